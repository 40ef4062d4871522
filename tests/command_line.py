"""Commands run in this process on a tiny untrained model, for tests of what they print and refuse."""

from tiny import sentences

from nano_simcse import EncoderConfig
from nano_simcse.cli import main
from nano_simcse.data.tokenizer import Tokenizer
from nano_simcse.model import new_encoder


def untrained_model(folder):
    """The folder with an encoder of one layer, 16 wide, that knows the words of `tiny.sentences`."""
    tokenizer = Tokenizer.train(sentences(), 150)
    config = EncoderConfig(tokenizer.vocab_size, layers=1, width=16, heads=2, max_positions=24)
    new_encoder(config, tokenizer, "mean", 24, 0).save(folder)
    return folder


def command(capsys, *arguments, code=0):
    """(out, err) of a command that ends in `code`."""
    try:
        found = main([str(a) for a in arguments])
    except SystemExit as stop:  # argparse
        found = stop.code
    captured = capsys.readouterr()
    assert found == code, captured
    return captured

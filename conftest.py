"""The whole suite runs in several processes; what is named on the command line in this one, where `-s` and breakpoints
work. `pytest -n 0` keeps the whole suite in one."""

import signal

import pytest

from nano_simcse.parallel import available_cores

MOST = 8  # processes; each runs every chapter once to know its checks


@pytest.hookimpl(tryfirst=True)  # before the plugin reads what is set here
def pytest_cmdline_main(config):
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell lets what it starts in the background ignore Ctrl-C
        signal.signal(signal.SIGINT, signal.default_int_handler)  # which tests send, to this process and to others
    option = config.option
    whole = config.args_source is pytest.Config.ArgsSource.TESTPATHS and not hasattr(config, "workerinput")
    watched = option.usepdb or option.capture == "no" or option.collectonly
    unasked = getattr(option, "numprocesses", 0) is None  # 0: pytest-xdist is not installed
    if whole and unasked and not watched and available_cores() > 1:
        option.numprocesses, option.dist = min(available_cores(), MOST), "loadfile"  # fixtures of a file are made once

"""Chapter 15: the loss falls with the temperature whether or not the embeddings improve."""

from lesson import chapter_values

from figures import _style


def data():
    """Loss of one fixed set of embeddings by temperature; score and final loss of encoders trained at several."""
    chapter = chapter_values("ch15")
    return {
        "tau": chapter["taus"],
        "loss": chapter["fixed_losses"],
        "trained_tau": chapter["train_taus"],
        "trained_loss": chapter["trained_at"][:, 0],
        "spearman": chapter["trained_at"][:, 1],
    }


def draw():
    shown = data()
    figure, (left, right) = _style.panels(columns=2, width=4.4, height=3.5)
    left.loglog(shown["tau"], shown["loss"], "o-", color=_style.BLUE)
    left.set(xlabel="temperature", ylabel="loss (nats)")
    left.annotate("one set of embeddings,\nrecall@1 is 100 % at every point", (0.98, 0.05), xycoords="axes fraction",
                  ha="right", fontsize=8.5)
    right.plot(shown["trained_loss"], shown["spearman"], "D", color=_style.VERMILION)
    for tau, x, y in zip(shown["trained_tau"], shown["trained_loss"], shown["spearman"], strict=True):
        right.annotate(f"{tau:g}", (x, y), xytext=(7, -3), textcoords="offset points", fontsize=8.5)
    right.set_xscale("log")
    right.set(xlabel="final training loss (nats), labels: temperature", ylabel="Spearman with gold similarity")
    figure.suptitle("A lower loss from a lower temperature is not a better embedding", x=0.01, ha="left", weight="bold")
    return figure

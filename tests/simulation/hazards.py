"""What goes wrong in one run and how often, both chosen by the seed."""

from random import Random

# Per place that is passed, except where it says otherwise. Swarm testing: in a given run many kinds
# of trouble are off, so that the others are seen deep.
CHOICES: dict[str, tuple[float, ...]] = {
    "somebody else comes between": (0.0, 0.03, 0.12),
    "the commit is refused": (0.0, 0.0, 0.02),
    "the reply to a commit is lost": (0.0, 0.0, 0.03),
    "the network is unavailable": (0.0, 0.02, 0.15),
    "the network rejects": (0.0, 0.0, 0.05),
    "the network does it and the reply is lost": (0.0, 0.05, 0.2),
    "the network loses the call": (0.0, 0.0, 0.1),
    "the network is late": (0.0, 0.0, 0.1),
    "the clock jumps": (0.0, 0.0, 1.0),
    "a message is lost": (0.0, 0.1, 0.3),
    "a message comes twice": (0.0, 0.1, 0.3),
    "a message is late": (0.0, 0.2, 0.5),
    "a publish is not confirmed": (0.0, 0.0, 0.05),
    "a process dies": (0.0, 0.7, 1.0),  # Per operation that would let one die.
}
TWIN = "a twin states the same intent"
TWINS = (0.0, 1.0)  # Per intent of a plan change; half of the runs have none, the others few.


class Hazards:
    """Decides by the seed whether something goes wrong here and now.

    `of_twins` is for twins alone, so that a run in which none comes is the same as without them.
    """

    def __init__(self, random: Random, of_twins: Random) -> None:
        self._random, self._of_twins = random, of_twins
        self.is_calm = False
        self.rates = {name: random.choice(rates) for name, rates in CHOICES.items()}
        self.rates[TWIN] = of_twins.choice(TWINS)
        if self.rates["the clock jumps"]:
            # What is late is promised by the clock: no saga can tell it apart from one that jumped.
            self.rates["the network is late"] = 0.0

    def strikes(self, name: str) -> bool:
        """Tell whether it happens; never once it is calm."""
        rate, random = self.rates[name], self._of_twins if name == TWIN else self._random
        return not self.is_calm and rate > 0 and random.random() < rate

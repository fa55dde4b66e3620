"""What goes wrong in one run and how often, both chosen by the seed."""

from collections import Counter
from random import Random

from tests.simulation.story import chance

TWIN = "a twin states the same intent"
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
    TWIN: (0.0, 1.0),  # Per intent of a plan change, of which there are few.
    "a process dies": (0.0, 0.7, 1.0),  # Per operation that would let one die.
}


class Hazards:
    """Decides by the seed whether something goes wrong here and now.

    It follows from what may go wrong, for which request, where and how often before: no choice
    depends on those that were made elsewhere.
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._asked: Counter[tuple[object, ...]] = Counter()
        self.number = 0  # Of the request that is being played.
        self.is_calm = False
        self.rates = {name: chance(seed, name).choice(rates) for name, rates in CHOICES.items()}
        if self.rates["the clock jumps"]:
            # What is late is promised by the clock: no saga can tell it apart from one that jumped.
            self.rates["the network is late"] = 0.0

    def draw(self, *key: object) -> Random:
        """Return the choices of the next attempt at something for the present request."""
        key = (self.number, *key)
        self._asked[key] += 1
        return chance(self._seed, *key, self._asked[key])

    def strikes(self, name: str, where: str = "") -> bool:
        """Tell whether it happens; never once it is calm."""
        rate = self.rates[name]
        return not self.is_calm and rate > 0 and self.draw(name, where).random() < rate

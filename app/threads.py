"""How many threads answer HTTP and work, and how many of them may wait for the network."""

HTTP_THREADS = 80  # Threads are cheap here: nearly all of them wait, for the log or the network.
WAITING_MAX = HTTP_THREADS // 2  # The other half answers all who must not wait for a network.

LOOKUP_THREADS = 8  # Half of them, which is what one organization gets, keep a core busy.
PROVISION_THREADS = WAITING_MAX  # Who may wait for the network is never behind one that hangs.
BILLING_THREADS = 1  # Hundreds of charges wait for the disk, and no other work behind them.

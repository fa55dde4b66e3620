"""How many threads of `serve` answer HTTP, and how many of them may wait for the network."""

HTTP_THREADS = 80  # Threads are cheap here: nearly all of them wait, for the log or the network.
WAITING_MAX = HTTP_THREADS // 2  # The other half answers all who must not wait for a network.

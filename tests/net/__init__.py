"""A net of recorded behaviour: what users see of the service, as text that a person can read.

It stands outside. Requests go over a socket to `serve`, which `serve.py` starts as a process of its
own; commands go through the table of all commands; webhooks come to a receiver of ours. So what is
inside can be rewritten, and a test of the inside can go, as long as no text changes here.

Each `test_*.py` is one noun, and each test in it is one scenario: it plays a story with the `net`
fixture, which writes down every exchange. In the end the text is compared with the file of the
same name below `recordings/`. A difference fails and is printed as a diff.

- Run it: `pytest tests/net -n 2 --dist loadfile -k "not postgresql"`. `make test` also plays
  those that are marked `each_database` on PostgreSQL, and expects the same texts.
- Read it: `==` begins an exchange, `->` its reply; `as for` names the first exchange of this title,
  whose reply was the same. Bodies in JSON have their names sorted. What the server makes up is
  masked by `masking.py`: `<id 2>` is the second id of the scenario wherever it stands, `<now>` a
  time of the scenario itself, `<now +5 min>` one after it. Amounts, counts, names, codes and
  statuses are as they came.
- Renew it: `python -m tests.net.record`, then read `git diff`. A recording that nobody plays any
  more fails `test_coverage.py`, and so does an operation, a status or a command without one.

To make a scenario hold at any hour and speed, wait with `until`, whose requests are not written
down, and record only what has come to rest.
"""

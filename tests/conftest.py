"""What holds for every test of the repository."""

from hypothesis import settings

# No deadline for one example: on shared cores it measures the neighbours. Under CI hypothesis loads
# a profile of its own, which has none either and repeats the same examples.
settings.register_profile("laptop", deadline=None)
if settings.get_current_profile_name() == "default":
    settings.load_profile("laptop")

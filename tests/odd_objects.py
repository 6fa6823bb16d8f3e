"""Objects that fail when they are looked at, for records and persons alike."""

import weakref


class Pretender:
    @property
    def __class__(self):
        raise RuntimeError


def dead_reference():
    class Gone:
        pass

    return weakref.proxy(Gone())

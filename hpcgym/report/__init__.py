"""Tables and pictures of results.

Pictures need matplotlib, the extra ``report``. It is imported when the first one is
drawn, without its global state, so that pictures can be drawn without a display and in threads.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

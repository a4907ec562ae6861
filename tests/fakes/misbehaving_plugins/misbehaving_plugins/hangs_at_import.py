"""Never finishes being imported."""

import threading

threading.Event().wait()

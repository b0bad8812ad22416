"""Tells a story through libpronk.so and its functions for C (pronk_c.h), with nothing but ctypes:

story.py libpronk.so MODEL.gguf "Once upon a time"
"""
import ctypes
import sys
from ctypes import byref, c_char, c_char_p, c_int, c_size_t, c_uint, c_void_p


class Limits(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("max_tokens", c_int), ("grammar", c_void_p), ("stops", c_void_p),
                ("on_prompt", c_void_p), ("reading", c_uint), ("on_token", c_void_p), ("n_likeliest", c_int),
                ("on_logits", c_void_p)]


def check(status):
    if status != 0:
        sys.exit("story: " + pronk.pronk_error().decode())


@ctypes.CFUNCTYPE(c_int, ctypes.POINTER(c_char), c_size_t, c_void_p)
def show(text, n_bytes, user):
    sys.stdout.buffer.write(text[:n_bytes])
    sys.stdout.flush()
    return 0  # goes on


library, path, beginning = sys.argv[1:]
pronk = ctypes.CDLL(library)
pronk.pronk_error.restype = c_char_p
model, session = c_void_p(), c_void_p()
check(pronk.pronk_model_open(path.encode(), byref(model)))
check(pronk.pronk_session_open(model, b"temperature=0", byref(session)))
print(beginning, end="", flush=True)
limits = Limits(size=ctypes.sizeof(Limits), max_tokens=100)
check(pronk.pronk_session_complete(session, beginning.encode(), byref(limits), show, None, None))
pronk.pronk_session_free(session)
pronk.pronk_model_free(model)

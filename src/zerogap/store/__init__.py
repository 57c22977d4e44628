"""Data larger than memory: a folder of blocks of rows in random order, read one after the other.

A store holds two files.  `blocks-0.bin` (or `blocks-1.bin`, when a store has been replaced) has
the blocks, one after the other, each of them its arrays in a fixed order, raw and little-endian,
every array at a multiple of 64 bytes: a block is always read whole, so that one read and one
checksum serve all of its arrays.  `manifest.json` says what they are and is written last: without
it there is no store, and replacing it replaces the store.
"""

from zerogap.store.blocks import Progress
from zerogap.store.layout import Block
from zerogap.store.manifest import StoreError
from zerogap.store.reader import Part, Store
from zerogap.store.writer import write_store

__all__ = ["Block", "Part", "Progress", "Store", "StoreError", "write_store"]

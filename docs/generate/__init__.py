"""Writes the generated parts of the pages in docs/: ``make docs``.

A module for each page reads the tables of the product, and of its tests where a page says what
they have shown. ``write_docs.py`` has the list of pages, ``pages.py`` the Markdown. That the pages
are up to date is a test (tests/house/test_docs.py).
"""

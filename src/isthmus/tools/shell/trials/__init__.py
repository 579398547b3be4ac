"""Commands tried in a throw-away copy of their folder: what they change is known before anybody is asked.

`effect` and `shown` decide, `archive` keeps what was decided on; `copying` and `applying` read and write the folders.
"""

"""Reads and shows the record: pod rows, waterfall, timeline, stuck pods, verdicts, and the routes under /glass."""

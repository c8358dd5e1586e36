"""What every room needs and that needs no other: tasks, rankings, filters, files, paths, the clock."""

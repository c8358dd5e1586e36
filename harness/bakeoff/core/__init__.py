"""What every package needs: tasks, rankings, filters, files, paths, the clock, and how extensions are found."""

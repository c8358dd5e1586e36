"""What people read: made from the result files alone, so that it can be made again."""

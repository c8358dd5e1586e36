"""Statistical methods in worlds of known truth: promised and measured rates."""

"""Statistical methods, some not used by a command yet, in worlds of known truth: promised and measured rates."""

"""Extensions of the bake-off. The core finds them by listing this folder and runs without it."""

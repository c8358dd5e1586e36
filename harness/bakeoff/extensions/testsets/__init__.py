"""From documents to a graded task: import, queries, planning, grading, agreement, audit, health."""

from bakeoff.core.extensions import Command

_HERE = "bakeoff.extensions.testsets"
_COMMANDS = f"{_HERE}.commands"
COMMANDS = (
    Command("plan-queries", f"{_COMMANDS}.queries:plan_queries", "Decide", "Plan how many queries to label."),
    Command("corpus", f"{_COMMANDS}.corpus:corpus", "Test sets", "Import documents into articles.json."),
    Command("select", f"{_COMMANDS}.corpus:select", "Test sets", "Draw a stratified sample of documents."),
    Command("queries", f"{_COMMANDS}.queries:queries", "Test sets", "Import or generate queries."),
    Command("grade", f"{_COMMANDS}.grade:grade", "Test sets", "Grade a task's pairs, by people or by a model."),
    Command("annotate", f"{_COMMANDS}.annotate:annotate", "Test sets", "Grade by hand, on a local page."),
    Command("agreement", f"{_COMMANDS}.agreement:agreement", "Test sets", "Measure how far annotators agree."),
    Command("adjudicate", f"{_COMMANDS}.annotate:adjudicate", "Test sets", "Settle what annotators disagree on."),
    Command("audit", f"{_COMMANDS}.agreement:audit", "Test sets", "Audit a judge model against people."),
)
REGISTRIES = {"makers": (f"{_HERE}.generate:MAKERS", "--maker NAME of `bakeoff queries generate`")}
TASK_HEALTH = {"graded": f"{_COMMANDS}.health:examine"}
WORDS = {"testsets": f"{_COMMANDS}.health:WORDS"}

/* Marks a query's words in a document: whole words with the same beginning. */
window.markWords = (text, query) => {
  const common = "and are but for from had has have how its not that the their they this was were what when where which who why with you your";
  const stop = new Set(common.split(" "));
  const roots = (query.toLowerCase().match(/[\p{L}\p{N}]{3,}/gu) || [])
    .filter((word) => !stop.has(word))
    .map((word) => (word.length > 4 ? word.replace(/(ies|es|s|y)$/u, "") : word));
  const hit = (word) => roots.some((root) => word.startsWith(root) && word.length <= root.length + 3);
  return text.split(/([\p{L}\p{N}]+)/u).map((part) => {
    if (!hit(part.toLowerCase())) return part;
    const mark = document.createElement("mark");
    mark.textContent = part;
    return mark;
  });
};

// The parts of code that have a colour: one list for editors and for lines that are drawn without one.

import { type Tag, tags } from "@lezer/highlight";

/** The colour `--c-NAME`, which is also the class `c-NAME` of lines, and its parts of code. */
export const CODE_TAGS: readonly { name: "key" | "str" | "num" | "fn" | "com"; tag: readonly Tag[] }[] = [
  { name: "key", tag: [tags.keyword, tags.modifier, tags.operatorKeyword] },
  { name: "str", tag: [tags.string, tags.special(tags.string), tags.regexp] },
  { name: "num", tag: [tags.number, tags.bool, tags.null, tags.atom] },
  {
    name: "fn",
    tag: [tags.function(tags.variableName), tags.function(tags.propertyName), tags.className, tags.typeName],
  },
  { name: "com", tag: [tags.comment, tags.meta] },
];

// All that asks for an answer, and the diff in it: loaded behind the first drawing of the page.

import "../files/diff-view.ts";
import "../phone-menu.ts";
import "./question-card.ts";
import "./review-card.ts";
import "./trust-card.ts";

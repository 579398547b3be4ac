// What was chosen and typed in forms and not sent: it is there when the form is shown again.

import type { Answer, Field, Form } from "./form.ts";

/** Return a name of the form that a server's further try has, too: the call that asks, and what it says. */
function placeOf(taskId: string, form: Form): string {
  const id = form.calls[0]?.tool_call_id ?? "";
  return `${taskId}/${id.slice(0, Math.max(0, id.lastIndexOf("?")))}/${form.message}`;
}

export class FormDrafts {
  #kept = new Map<string, Answer>();
  /** The answers that were sent last for a form, in case they are not accepted. */
  #sent = new Map<string, Map<string, Answer>>();

  keep(taskId: string, form: Form | undefined, field: Field, answer: Answer): void {
    if (form) this.#kept.set(`${taskId}/${field.key}`, answer);
  }

  /** Return the answers of a form by its fields' keys. */
  of(taskId: string, form: Form | undefined): Map<string, Answer> {
    const found = new Map<string, Answer>();
    const before = form?.problem ? this.#sent.get(placeOf(taskId, form)) : undefined;
    for (const field of form?.fields ?? []) {
      const answer = this.#kept.get(`${taskId}/${field.key}`) ?? before?.get(field.name);
      if (answer) found.set(field.key, answer);
    }
    return found;
  }

  /** Forget the answers of a call, which were sent; a server may ask for them again. */
  sent(taskId: string, form: Form | undefined, callId: string): void {
    if (!form) return;
    const place = placeOf(taskId, form);
    const answers = new Map<string, Answer>();
    for (const field of form.fields.filter((one) => one.callId === callId)) {
      const key = `${taskId}/${field.key}`;
      const answer = this.#kept.get(key);
      if (answer) answers.set(field.name, answer);
      this.#kept.delete(key);
    }
    if (form.is === "fields") this.#sent.set(place, answers);
  }
}

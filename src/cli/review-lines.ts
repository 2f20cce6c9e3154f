import {
  type Decision,
  MAX_DECIDER,
  MAX_DECISION_TEXT,
  MAX_REASON,
  type PendingCall,
  type Proposal,
  type Reviewer,
} from '../review/index.ts'
import { messageOf } from '../errors/index.ts'
import { formatValue } from '../support/index.ts'
import type { CallApprover } from './call-approver.ts'
import { type InputLine, inputLines } from './request-lines.ts'

const MAX_LINE_BYTES = 2 * 1024 * 1024

/** A decision on a line. */
interface DecisionLine {
  readonly id: string
  readonly decision: (typeof DECISIONS)[number]
  readonly script: string | null
  readonly text: string | null
  readonly by: string | null
}

const DECISIONS = ['accept', 'edit', 'respond', 'reject'] as const
const TEXTS = ['script', 'text', 'by'] as const

/** A proposal as one line of JSON (docs/cli.md). */
export function proposalLine(proposal: Proposal): Record<string, unknown> {
  const { limitsEnforced, ...sandbox } = proposal.sandbox
  return { v: 1, type: 'proposal', ...proposal, sandbox: { ...sandbox, limits_enforced: limitsEnforced } }
}

/** A call that waits for approval as one line of JSON (docs/cli.md). */
function approvalLine({ id, tool, args, effect, line }: PendingCall): Record<string, unknown> {
  return { v: 1, type: 'approval', id, tool, args, effect, line }
}

/** A question that waits. */
interface Question {
  /** The mistake of a decision about it. */
  problem(decision: DecisionLine): string | undefined
  readonly decided: PromiseWithResolvers<DecisionLine>
}

/**
 * Writes each proposal and each call that waits for approval as a line, and reads each decision as a line. A line that is not a decision
 * about one that waits is reported.
 */
export class DecisionLines implements CallApprover {
  readonly #input: AsyncIterable<Uint8Array>
  readonly #write: (line: Record<string, unknown>) => Promise<void>
  readonly #report: (problem: string) => Promise<void>
  readonly #waiting = new Map<string, Question>()
  /** The calls that were asked about. */
  readonly #asked = new Set<string>()
  #ended: Promise<string> | undefined
  sandglass: CallApprover['sandglass']

  constructor(
    input: AsyncIterable<Uint8Array>,
    write: (line: Record<string, unknown>) => Promise<void>,
    report: (problem: string) => Promise<void>,
  ) {
    this.#input = input
    this.#write = write
    this.#report = report
  }

  readonly review: Reviewer = async (proposal) =>
    toDecision(await this.#ask(proposal.id, proposalLine(proposal), problemOfDecision))

  readonly onPending = async (calls: readonly PendingCall[]): Promise<void> => {
    const fresh = calls.filter(({ id }) => !this.#asked.has(id))
    for (const { id } of fresh) this.#asked.add(id)
    await Promise.all(fresh.map((call) => this.#decide(call)))
  }

  async #decide(call: PendingCall): Promise<void> {
    call.signal.addEventListener('abort', () => this.#waiting.delete(call.id), { once: true })
    const { decision, text, by } = await this.#ask(call.id, approvalLine(call), problemOfApproval)
    const answered =
      decision === 'accept'
        ? this.sandglass?.approve(call.id, { by })
        : this.sandglass?.deny(call.id, text ?? undefined, { by })
    // The run may have ended meanwhile.
    await answered?.catch((error: unknown) => this.#report(messageOf(error)))
  }

  async #ask(id: string, line: Record<string, unknown>, problem: Question['problem']): Promise<DecisionLine> {
    const decided = Promise.withResolvers<DecisionLine>()
    this.#waiting.set(id, { problem, decided })
    await this.#write(line)
    // Continues to read while a script runs: a second answer to a question is reported at once.
    this.#ended ??= this.#read().then(
      () => 'stdin ended',
      (error: unknown) => `stdin cannot be read (${messageOf(error)})`,
    )
    const undecided = this.#ended.then((why) => {
      throw new Error(`${why} before a decision about the ${String(line['type'])} ${id}`)
    })
    return Promise.race([decided.promise, undecided])
  }

  async #read(): Promise<void> {
    for await (const line of inputLines(this.#input, MAX_LINE_BYTES)) {
      const decision = decisionIn(line, this.#waiting)
      if (typeof decision === 'string') {
        await this.#report(`line ${line.number} of stdin is not a decision: ${decision}`)
        continue
      }
      this.#waiting.get(decision.id)?.decided.resolve(decision)
      this.#waiting.delete(decision.id)
    }
  }
}

/** Parses the decision on a line; returns the problem if it is not one. */
function decisionIn(line: InputLine, waiting: ReadonlyMap<string, Question>): DecisionLine | string {
  if ('problem' in line)
    return line.problem === 'too-long' ? `it is longer than ${MAX_LINE_BYTES} bytes` : 'it is not UTF-8'
  let given: unknown
  try {
    given = JSON.parse(line.text)
  } catch (error) {
    return messageOf(error)
  }
  if (typeof given !== 'object' || given === null) return 'it is not an object'
  const unknown = Object.keys(given).find((key) => !['id', 'decision', ...TEXTS].includes(key))
  if (unknown !== undefined) return `it has an unknown key ${JSON.stringify(unknown)}`
  const { id, decision, ...texts }: Partial<Record<'id' | 'decision' | (typeof TEXTS)[number], unknown>> = given
  const { script = null, text = null, by = null } = texts
  if (waiting.size === 0) return 'nothing waits for one'
  const question = typeof id === 'string' ? waiting.get(id) : undefined
  if (typeof id !== 'string' || question === undefined)
    return `it is about ${formatValue(id)}, and ${[...waiting.keys()].map((one) => JSON.stringify(one)).join(', ')} waits`
  const known = DECISIONS.find((one) => one === decision)
  if (known === undefined) return `decision: ${formatValue(decision)} is not one of ${DECISIONS.join(', ')}`
  if (!isTextOrNull(script) || !isTextOrNull(text) || !isTextOrNull(by)) return `${TEXTS.join(', ')}: texts, or null`
  // JSON.parse uses the last of duplicate keys, but a person may have read the first.
  if (keysIn(line.text) > Object.keys(given).length) return 'it has a key more than once'
  if ((by ?? '').length > MAX_DECIDER) return `by is longer than ${MAX_DECIDER} characters`
  const found = { id, decision: known, script, text, by }
  return question.problem(found) ?? found
}

/** The number of keys in an object whose values are texts and nulls. */
function keysIn(json: string): number {
  return json
    .matchAll(/"(?:[^"\\]|\\.)*"(\s*:)?/g)
    .reduce((count, [, colon]) => count + (colon === undefined ? 0 : 1), 0)
}

function problemOfApproval({ decision, script, text }: DecisionLine): string | undefined {
  if (decision === 'edit' || script !== null) return 'a call is accepted or rejected; it has no script'
  if ((text ?? '').length > MAX_REASON) return `its text is longer than ${MAX_REASON} characters`
  return undefined
}

function problemOfDecision({ decision, script, text }: DecisionLine): string | undefined {
  if (script !== null && script.trim() === '') return 'its script is empty'
  if (decision === 'edit' && script === null) return 'edit needs the changed script'
  if (decision === 'respond' && (text ?? '').trim() === '') return 'respond needs a text for the model'
  if (decision !== 'accept' && decision !== 'edit' && script !== null) return `${decision} takes no script`
  if ((text ?? '').length > MAX_DECISION_TEXT) return `its text is longer than ${MAX_DECISION_TEXT} characters`
  return undefined
}

function isTextOrNull(value: unknown): value is string | null {
  return value === null || typeof value === 'string'
}

/** The decision as the library takes it. An edit accepts another script. */
function toDecision({ decision, script, text, by }: DecisionLine): Decision {
  switch (decision) {
    case 'accept':
    case 'edit':
      return { decision: 'accept', script, by }
    case 'respond':
      return { decision, text: text ?? '', by }
    case 'reject':
      return { decision, text: (text ?? '').trim() === '' ? REJECTED : (text ?? ''), by }
  }
}

/** The reason of a rejection for which a person gives none. */
export const REJECTED = 'rejected without a reason'

import { createHash, randomUUID } from 'node:crypto'
import type { ServedBy } from '../executor/index.ts'
import type { ToolEffect, ToolSet } from '../tools/index.ts'

/** The abilities of a script that its check found. */
export interface Findings {
  /** The packages that it can import in addition to the standard library, with those that it names itself, as `name==version`. */
  readonly dependencies: readonly string[]
  /**
   * The tools that its text names; all tools if it does something that the policy `strict` refuses and that can reach other tools.
   * This informs a reviewer: a script can call tools that are not listed.
   */
  readonly tools: readonly {
    readonly name: string
    /** Null for a Python tool, which runs in the sandbox. */
    readonly effect: ToolEffect | null
  }[]
  /** The isolation of the sandbox that checked the script; another sandbox of the same engine runs it. */
  readonly sandbox: Pick<ServedBy, 'engine' | 'level' | 'python' | 'limitsEnforced' | 'network'>
}

/** A script that waits for a decision; no part of it has run. */
export interface Proposal extends Findings {
  /** Unguessable, and unique to this proposal. */
  readonly id: string
  /** The task, or null for a script that an agent passes to a tool. */
  readonly task: string | null
  /** From 1, within the task or its step; for `asTool` the number of the call. */
  readonly attempt: number
  /** The step of a task in INTERACTIVE mode, from 1; else null. */
  readonly step: number | null
  /** The text of the model around its script; empty if there is none. */
  readonly plan: string
  /** The exact bytes that run if the proposal is accepted. */
  readonly script: string
  /** SHA-256 of `script` as UTF-8, in hexadecimal. */
  readonly sha256: string
  /**
   * A unified diff from the script that the model proposed last; null if there was none, or if both together have more than
   * 65,536 characters or 2,000 lines, or take too long to compare.
   */
  readonly diff: string | null
  /** The mistakes in the script of the last decision, which the check rejected; null if there was none. */
  readonly problem: string | null
}

/** Makes the findings of a check. @param calledTools the names that the checker found; undefined for all tools. */
export function findingsOf(
  { calledTools, sandbox }: { readonly calledTools: readonly string[] | undefined; readonly sandbox: ServedBy },
  dependencies: readonly string[],
  tools: ToolSet | undefined,
): Findings {
  const all = tools === undefined ? [] : [...tools.tools.keys(), ...tools.pythonTools.keys()]
  const { engine, level, python, limitsEnforced, network } = sandbox
  return {
    dependencies,
    tools: all
      .filter((name) => calledTools?.includes(name) !== false)
      .map((name) => ({ name, effect: tools?.tools.get(name)?.effect ?? null })),
    sandbox: { engine, level, python, limitsEnforced, network },
  }
}

/** Larger texts are not compared: that would block the thread of the host. */
const MAX_DIFF_CHARS = 64 * 1024
const MAX_DIFF_LINES = 2000
/** The limit on the search for the shortest difference, in milliseconds. */
const DIFF_MS = 50

/** Makes a proposal. @param last the script that the model proposed last, or null. */
export async function makeProposal(
  given: Omit<Proposal, 'id' | 'sha256' | 'diff'>,
  last: string | null,
): Promise<Proposal> {
  const { dependencies, tools, sandbox } = given
  // Frozen, because the record of the decision is built from the object that the reviewer got.
  return Object.freeze({
    id: randomUUID(),
    ...given,
    dependencies: Object.freeze([...dependencies]),
    tools: Object.freeze(tools.map((tool) => Object.freeze({ ...tool }))),
    sandbox: Object.freeze({ ...sandbox }),
    sha256: createHash('sha256').update(given.script).digest('hex'),
    diff: last === null ? null : await diffOf(last, given.script),
  })
}

async function diffOf(before: string, after: string): Promise<string | null> {
  const lines = before.split('\n').length + after.split('\n').length
  if (before.length + after.length > MAX_DIFF_CHARS || lines > MAX_DIFF_LINES) return null
  const { createTwoFilesPatch } = await import('diff')
  const limit = { timeout: DIFF_MS }
  const patch = createTwoFilesPatch('last', 'this', `${before}\n`, `${after}\n`, undefined, undefined, limit)
  // The first line is a separator above the file names.
  return patch === undefined ? null : patch.slice(patch.indexOf('\n') + 1)
}

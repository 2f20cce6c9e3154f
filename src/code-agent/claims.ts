import { randomUUID } from 'node:crypto'
import { SandglassError } from '../errors/index.ts'
import { isGone, type OwnerProcess, thisProcess } from '../persistence/index.ts'
import type { Checkpointer } from './checkpointer.ts'

/** The decision about a proposal, the same for all processes. */
export interface DecisionClaim<D> {
  readonly claim: string
  readonly decision: D
  /** The time in ISO 8601. */
  readonly at: string
}

/** The mark of a script that is about to run. */
interface RunClaim {
  readonly claim: string
  /** The agent that runs it. */
  readonly agent: string
  readonly process: OwnerProcess | null
}

/** The namespace of these records in a thread. LangGraph reads only the namespaces of its graphs. */
const NAMESPACE = 'sandglass'
const CHANNEL = 'claim'

/**
 * Records of a thread that keep their first value, even if other processes write later: the decision about a proposal, and the process
 * that runs a script. LangGraph has no lock and no compare-and-swap, but its checkpointers keep the first write of a task and ignore
 * later ones, so that every process reads the same value.
 */
export class Claims {
  readonly #checkpointer: Checkpointer
  /** The scripts that this process runs. */
  readonly #running = new Set<string>()
  /** The keys of the marks that this process is writing. */
  readonly #claiming = new Set<string>()
  /** Marks that may have been written, by key: the checkpointer failed before it confirmed them. */
  readonly #unconfirmed = new Map<string, RunClaim>()
  readonly #agent: string = randomUUID()
  /** True after the trial that shows that the checkpointer keeps first writes. */
  #isTried = false

  constructor(checkpointer: Checkpointer) {
    this.#checkpointer = checkpointer
  }

  /** Returns the decision about a proposal; undefined if there is none. @param id the id of the proposal. */
  async decisionOn<D>(thread: string, id: string): Promise<DecisionClaim<D> | undefined> {
    const found = await this.#read(thread, id)
    return found.get('decision') as DecisionClaim<D> | undefined
  }

  /** Records a decision unless there is one. Returns the recorded decision. @param claim a unique id of this decision. */
  async decide<D>(thread: string, id: string, claim: string, decision: D): Promise<DecisionClaim<D>> {
    return this.#claim(thread, id, 'decision', { claim, decision, at: new Date().toISOString() })
  }

  /**
   * Records that the script of a turn is about to run. Returns undefined if it began before and may have run.
   * @param takeOver true if the process that ran it is known to be gone.
   * @throws SandglassError `agent_busy` if another call in this process begins or runs it, or it may still run in another process.
   */
  async begin(thread: string, turn: number, takeOver: boolean): Promise<StartedScript | undefined> {
    const record = `turn-${turn}`
    const earlier = await this.#read(thread, record)
    let attempt = 0
    while (earlier.has(`withdrawn-${attempt}`)) attempt += 1
    const name = `run-${attempt}`
    const key = JSON.stringify([thread, record, name])
    // Two concurrent calls must not use the same unconfirmed mark.
    if (this.#claiming.has(key))
      throw new SandglassError(
        'agent_busy',
        'another call in this process is starting the script of this turn: await that call first',
      )
    this.#claiming.add(key)
    const own = this.#unconfirmed.get(key) ?? { claim: randomUUID(), agent: this.#agent, process: thisProcess() }
    const inForce = await this.#claim(thread, record, name, own)
      .catch((error: unknown) => {
        this.#unconfirmed.set(key, own)
        throw error
      })
      .finally(() => this.#claiming.delete(key))
    this.#unconfirmed.delete(key)
    if (inForce.claim !== own.claim) {
      if (!takeOver) this.#assertEnded(inForce)
      return undefined
    }
    this.#running.add(own.claim)
    return {
      withdraw: async () => void (await this.#claim(thread, record, `withdrawn-${attempt}`, own)),
      end: () => void this.#running.delete(own.claim),
    }
  }

  #assertEnded({ claim, agent, process: owner }: RunClaim): void {
    if (agent === this.#agent ? !this.#running.has(claim) : isGone(owner)) return
    throw new SandglassError(
      'agent_busy',
      `the script of this turn was started by ${owner === null ? 'another process' : `process ${owner.pid}`}, and may still run there. ` +
        'If that process is gone for good, call resume({ takeOver: true })',
    )
  }

  /** Writes a value unless there is one. Returns the stored value. */
  async #claim<V extends { readonly claim: string }>(
    thread: string,
    record: string,
    name: string,
    value: V,
  ): Promise<V> {
    await this.#prepare(thread)
    await this.#make(thread, record)
    await this.#checkpointer.putWrites(placeOf(thread, record), [[CHANNEL, value]], name)
    const kept = (await this.#read(thread, record)).get(name)
    if (kept === undefined)
      throw new SandglassError('checkpointer_failed', 'the checkpointer does not return what was written to it')
    return kept as V
  }

  /** Creates the record. It has no content, so that several processes can create it repeatedly. */
  async #make(thread: string, record: string): Promise<void> {
    const config = { configurable: { thread_id: thread, checkpoint_ns: NAMESPACE } }
    const checkpoint = {
      v: 4,
      id: record,
      ts: '1970-01-01T00:00:00.000Z',
      channel_values: {},
      channel_versions: {},
      versions_seen: {},
    }
    await this.#checkpointer.put(config, checkpoint, { source: 'update', step: -1, parents: {} }, {})
    // MemorySaver keeps first writes only from the second write of a record on.
    await this.#checkpointer.putWrites(placeOf(thread, record), [[CHANNEL, null]], 'made')
  }

  async #read(thread: string, record: string): Promise<ReadonlyMap<string, unknown>> {
    const tuple = await this.#checkpointer.getTuple(placeOf(thread, record))
    const writes: unknown = tuple === undefined ? [] : Reflect.get(tuple, 'pendingWrites')
    return new Map(
      (Array.isArray(writes) ? writes : []).map(([name, , value]: [string, string, unknown]) => [name, value]),
    )
  }

  /** Checks that the checkpointer keeps first writes; otherwise nobody can tell which process was first. */
  async #prepare(thread: string): Promise<void> {
    if (this.#isTried) return
    await this.#make(thread, 'trial')
    const last = randomUUID()
    for (const value of [randomUUID(), last])
      await this.#checkpointer.putWrites(placeOf(thread, 'trial'), [[CHANNEL, value]], 'trial')
    const kept = (await this.#read(thread, 'trial')).get('trial')
    if (kept === undefined || kept === last)
      throw new SandglassError(
        'checkpointer_failed',
        'this checkpointer replaces the first write of a task, so two processes could both run a script: use that of SQLite or Postgres',
      )
    this.#isTried = true
  }
}

/** A script that this process may run. */
interface StartedScript {
  /** Withdraws the mark, because no part of the script has run. */
  readonly withdraw: () => Promise<void>
  readonly end: () => void
}

function placeOf(thread: string, record: string): object {
  return { configurable: { thread_id: thread, checkpoint_ns: NAMESPACE, checkpoint_id: record } }
}

import { createSandglass, type Sandglass } from '../../src/index.ts'
import { eventually } from '../../test/support/eventually.ts'
import { pause } from '../../bench/measure.ts'
import { FAILING_KINDS } from './failing-kinds.ts'
import { excessOver, type Holdings, measureHoldings } from './holdings.ts'
import { type SoakEnvironment, openEnvironment } from './environment.ts'
import { type RunContext, canRun, type Kind } from './kind.ts'
import { eachKind, type Load, startMixed, type Tally, type Unexpected } from './load.ts'
import { Random } from '../../test/support/random.ts'
import type { Remains } from './remains.ts'
import { type Sample, sampleOf } from './sample.ts'
import { SESSION_KINDS } from './session-kinds.ts'
import { summarizeSoak, type Leak, type SoakOptions, type Summary } from './summary.ts'
import { WORKING_KINDS } from './working-kinds.ts'
import { WORKSPACE_KINDS } from './workspace-kinds.ts'

const MiB = 1024 * 1024
const SETTLE_MS = 15_000
/** Runs of each kind before the first measurement: the pool keeps sandboxes warm from the third run of a spec. */
const WARM_UP_TIMES = 3
/** On a busy machine the first Pyodide snapshot takes longer than the default wait of a pool. */
const CHECKOUT_MS = 120_000
const LISTED = 50

/** Callbacks for progress, and settings for tests. */
export interface SoakSetting {
  readonly onSample?: (sample: Sample) => void
  readonly onUnexpected?: (unexpected: Unexpected) => void
  readonly onLeak?: (leak: Leak) => void
  /** Kinds to run. Default: all. */
  readonly kinds?: readonly Kind[]
  /** Time for resources to disappear at a pause; what remains is a leak. Default 15,000 ms. */
  readonly settleMs?: number
}

/** Loads an engine for the given time, checks for remains at every pause and at the end, and summarizes. */
export async function soak(options: SoakOptions, setting: SoakSetting = {}): Promise<Summary> {
  const startedAt = new Date()
  const environment = openEnvironment(options.engine)
  try {
    await warmUpProcess(environment, options)
    const empty = measureHoldings(0, environment.processes())
    const sg = await open(environment, options)
    const soakRun = new SoakRun(options, setting, environment, sg)
    try {
      await soakRun.run()
    } finally {
      await sg.close()
    }
    await soakRun.checkAfterClose(empty)
    const durationSec = Math.round((Date.now() - startedAt.getTime()) / 1000)
    return summarizeSoak({ options, startedAt: startedAt.toISOString(), durationSec, ...soakRun.found() })
  } finally {
    await environment.close()
  }
}

/** Opens what a process keeps for good, such as a source of random numbers, before the first count. */
async function warmUpProcess(environment: SoakEnvironment, options: SoakOptions): Promise<void> {
  const sg = await open(environment, options)
  await sg.run('emit_result(1)')
  await sg.close()
  await environment.engine.close()
}

function open(environment: SoakEnvironment, { concurrency }: SoakOptions): Promise<Sandglass> {
  return createSandglass({
    engine: environment.engine,
    poolSize: 2,
    maxOverflow: concurrency,
    checkoutTimeoutMs: CHECKOUT_MS,
    limits: { memoryBytes: 256 * MiB, pids: 64, executionTimeoutSec: 20 },
  })
}

/** One soak from its warm-up to its last check. */
class SoakRun {
  readonly #options: SoakOptions
  readonly #setting: SoakSetting
  readonly #environment: SoakEnvironment
  readonly #sg: Sandglass
  readonly #samples: Sample[] = []
  readonly #unexpected: Unexpected[] = []
  readonly #leaks = new Map<string, Leak>()
  readonly #runsByKind = new Map<string, number>()
  #runs = 0
  #unexpectedRuns = 0

  constructor(options: SoakOptions, setting: SoakSetting, environment: SoakEnvironment, sg: Sandglass) {
    this.#options = options
    this.#setting = setting
    this.#environment = environment
    this.#sg = sg
  }

  async run(): Promise<void> {
    const { seed, concurrency, minutes, everySec, engine, restSec, kinds: pattern = '' } = this.#options
    const { capabilities } = await this.#sg.report()
    const all = this.#setting.kinds ?? [...WORKING_KINDS, ...FAILING_KINDS, ...WORKSPACE_KINDS, ...SESSION_KINDS]
    const kinds = all.filter((kind) => canRun(kind, capabilities) && new RegExp(pattern).test(kind.name))
    const context: RunContext = { sg: this.#sg, engine, killSandbox: (id) => this.#environment.killSandbox(id) }
    const random = new Random(seed)
    this.#count(await eachKind(context, kinds, random, { times: WARM_UP_TIMES, atOnce: concurrency }))
    const baseline = await this.#baseline()
    const start = performance.now()
    const load = startMixed(context, kinds, random, concurrency, restSec)
    await load.pause()
    while (performance.now() - start < minutes * 60_000) await this.#round(load, start, everySec, baseline)
    await load.end()
  }

  /** Counts what an idle pool holds after every kind has run. */
  async #baseline(): Promise<Holdings> {
    await eventually(() => this.#busy(), SETTLE_MS)
    this.#environment.noteExistingFiles()
    this.#reportLeaks(await this.#findRemains(undefined))
    return this.#holdings()
  }

  async #round(load: Load, start: number, everySec: number, baseline: Holdings): Promise<void> {
    const began = performance.now()
    load.resume()
    const peakRss = await peakDuring(everySec * 1000)
    await load.pause()
    const loadSec = (performance.now() - began) / 1000
    const leaks = await this.#findRemains(baseline)
    const tally = load.take()
    const atSec = (performance.now() - start) / 1000
    const sample = sampleOf({ atSec, loadSec, tally, peakRssMiB: peakRss / MiB, holdings: this.#holdings(), leaks })
    this.#count(tally)
    this.#reportLeaks(leaks)
    this.#samples.push(sample)
    this.#setting.onSample?.(sample)
    this.#environment.engine.forget()
  }

  /** Checks after the close that no sandbox is left and that the host holds no more than at the start. */
  async checkAfterClose(empty: Holdings): Promise<void> {
    await this.#environment.engine.close()
    this.#reportLeaks(await this.#findRemains(empty))
  }

  found(): Pick<
    Summary,
    'runs' | 'runsByKind' | 'sandboxesMade' | 'unexpectedRuns' | 'unexpected' | 'leaks' | 'samples'
  > {
    return {
      runs: this.#runs,
      runsByKind: Object.fromEntries(this.#runsByKind),
      sandboxesMade: this.#environment.engine.made,
      unexpectedRuns: this.#unexpectedRuns,
      unexpected: this.#unexpected,
      leaks: [...this.#leaks.values()],
      samples: this.#samples,
    }
  }

  /** Returns what is left after the time to settle. */
  async #findRemains(baseline: Holdings | undefined): Promise<Remains> {
    let left: Remains = {}
    await eventually(async () => {
      const busy = this.#busy()
      const remains = await this.#environment.remains()
      left = { ...remains, ...(baseline === undefined ? {} : excessOver(baseline, this.#holdings())) }
      if (busy !== undefined) left = { ...left, 'busy pool': [busy] }
      return Object.keys(left).length === 0 ? undefined : 'something is left'
    }, this.#setting.settleMs ?? SETTLE_MS)
    return left
  }

  #busy(): string | undefined {
    const { leased, waiting, starting } = this.#sg.stats()
    return leased + waiting + starting === 0 ? undefined : JSON.stringify({ leased, waiting, starting })
  }

  #holdings(): Holdings {
    return measureHoldings(this.#environment.engine.living.size, this.#environment.processes())
  }

  #count({ runs, byKind, unexpected }: Tally): void {
    this.#runs += runs
    for (const [kind, count] of byKind) this.#runsByKind.set(kind, (this.#runsByKind.get(kind) ?? 0) + count)
    this.#unexpectedRuns += unexpected.length
    for (const one of unexpected) {
      this.#setting.onUnexpected?.(one)
      if (this.#unexpected.length < LISTED) this.#unexpected.push(one)
    }
  }

  #reportLeaks(remains: Remains): void {
    for (const [kind, items] of Object.entries(remains)) {
      for (const what of items) {
        if (this.#leaks.has(`${kind} ${what}`)) continue
        const leak = { kind, what }
        this.#leaks.set(`${kind} ${what}`, leak)
        this.#setting.onLeak?.(leak)
      }
    }
  }
}

/** Measures the peak of resident memory during a time. */
async function peakDuring(ms: number): Promise<number> {
  const until = performance.now() + ms
  let peak = 0
  for (let left = ms; left > 0; left = until - performance.now()) {
    await pause(Math.min(left, 250))
    peak = Math.max(peak, process.memoryUsage.rss())
  }
  return peak
}

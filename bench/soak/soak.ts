import { createSandglass, type Sandglass } from '../../src/index.ts'
import { eventually } from '../../test/support/eventually.ts'
import { pause } from '../measure.ts'
import { FAILING_KINDS } from './failing-kinds.ts'
import { above, type Footing, footingOf } from './footing.ts'
import { type Ground, makeGround } from './ground.ts'
import { type Bed, canRun, type Kind } from './kind.ts'
import { eachKind, type Load, startMixed, type Tally, type Unexpected } from './load.ts'
import { Random } from '../../test/support/random.ts'
import type { Remains } from './remains.ts'
import { type Sample, sampleOf } from './sample.ts'
import { judged, type Leak, type SoakOptions, type Summary } from './summary.ts'
import { WORKING_KINDS } from './working-kinds.ts'

const MiB = 1024 * 1024
const SETTLE_MS = 15_000
/** Each kind so often before the first measurement: an occasional spec keeps sandboxes warm from its third run on. */
const WARM_UP_TIMES = 3
/** On a machine that is loaded by other things, too, a first snapshot of Pyodide takes longer than a pool's default wait. */
const CHECKOUT_MS = 120_000
const LISTED = 50

/** Who hears of it while it goes on, and what a test wants otherwise. */
export interface SoakSetting {
  readonly onSample?: (sample: Sample) => void
  readonly onUnexpected?: (unexpected: Unexpected) => void
  readonly onLeak?: (leak: Leak) => void
  /** Kinds in place of all. */
  readonly kinds?: readonly Kind[]
  /** What is on its way out at a pause is gone by then; what is not is a leak. Default 15,000 ms. */
  readonly settleMs?: number
}

/** Loads an engine for the time asked for, looks for what is left at every pause and at the end, and judges. */
export async function soak(options: SoakOptions, setting: SoakSetting = {}): Promise<Summary> {
  const startedAt = new Date()
  const ground = makeGround(options.engine)
  try {
    await openedOnce(ground, options)
    const empty = footingOf(0, ground.processes())
    const sg = await open(ground, options)
    const course = new Course(options, setting, ground, sg)
    try {
      await course.run()
    } finally {
      await sg.close()
    }
    await course.lookForTheLast(empty)
    const durationSec = Math.round((Date.now() - startedAt.getTime()) / 1000)
    return judged({ options, startedAt: startedAt.toISOString(), durationSec, ...course.found() })
  } finally {
    await ground.close()
  }
}

/** What a process opens once and keeps, such as what a library reads random numbers from, is there before anything counts. */
async function openedOnce(ground: Ground, options: SoakOptions): Promise<void> {
  const sg = await open(ground, options)
  await sg.run('emit_result(1)')
  await sg.close()
  await ground.engine.close()
}

function open(ground: Ground, { concurrency }: SoakOptions): Promise<Sandglass> {
  return createSandglass({
    engine: ground.engine,
    poolSize: 2,
    maxOverflow: concurrency,
    checkoutTimeoutMs: CHECKOUT_MS,
    limits: { memoryBytes: 256 * MiB, pids: 64, executionTimeoutSec: 20 },
  })
}

/** One soak from its warm-up to its last look. */
class Course {
  readonly #options: SoakOptions
  readonly #setting: SoakSetting
  readonly #ground: Ground
  readonly #sg: Sandglass
  readonly #samples: Sample[] = []
  readonly #unexpected: Unexpected[] = []
  readonly #leaks = new Map<string, Leak>()
  readonly #runsByKind = new Map<string, number>()
  #runs = 0
  #unexpectedRuns = 0

  constructor(options: SoakOptions, setting: SoakSetting, ground: Ground, sg: Sandglass) {
    this.#options = options
    this.#setting = setting
    this.#ground = ground
    this.#sg = sg
  }

  async run(): Promise<void> {
    const { seed, concurrency, minutes, everySec, engine } = this.#options
    const { capabilities } = await this.#sg.report()
    const all = this.#setting.kinds ?? [...WORKING_KINDS, ...FAILING_KINDS]
    const kinds = all.filter((kind) => canRun(kind, capabilities))
    const bed: Bed = { sg: this.#sg, engine, killSandbox: (id) => this.#ground.killSandbox(id) }
    const random = new Random(seed)
    this.#count(await eachKind(bed, kinds, random, { times: WARM_UP_TIMES, atOnce: concurrency }))
    const baseline = await this.#baseline()
    const start = performance.now()
    const load = startMixed(bed, kinds, random, concurrency)
    await load.pause()
    while (performance.now() - start < minutes * 60_000) await this.#round(load, start, everySec, baseline)
    await load.end()
  }

  /** What a pool at rest holds after each kind of run. */
  async #baseline(): Promise<Footing> {
    await eventually(() => this.#busy(), SETTLE_MS)
    this.#ground.settle()
    this.#tell(await this.#left(undefined))
    return this.#footing()
  }

  async #round(load: Load, start: number, everySec: number, baseline: Footing): Promise<void> {
    const began = performance.now()
    load.resume()
    const peakRss = await peakDuring(everySec * 1000)
    await load.pause()
    const loadSec = (performance.now() - began) / 1000
    const leaks = await this.#left(baseline)
    const tally = load.take()
    const atSec = (performance.now() - start) / 1000
    const sample = sampleOf({ atSec, loadSec, tally, peakRssMiB: peakRss / MiB, footing: this.#footing(), leaks })
    this.#count(tally)
    this.#tell(leaks)
    this.#samples.push(sample)
    this.#setting.onSample?.(sample)
    this.#ground.engine.forget()
  }

  /** Everything is closed: no sandbox may be left, and the host holds no more than before it had one. */
  async lookForTheLast(empty: Footing): Promise<void> {
    await this.#ground.engine.close()
    this.#tell(await this.#left(empty))
  }

  found(): Pick<
    Summary,
    'runs' | 'runsByKind' | 'sandboxesMade' | 'unexpectedRuns' | 'unexpected' | 'leaks' | 'samples'
  > {
    return {
      runs: this.#runs,
      runsByKind: Object.fromEntries(this.#runsByKind),
      sandboxesMade: this.#ground.engine.made,
      unexpectedRuns: this.#unexpectedRuns,
      unexpected: this.#unexpected,
      leaks: [...this.#leaks.values()],
      samples: this.#samples,
    }
  }

  /** What is still left when everything on its way out had the time to go. */
  async #left(baseline: Footing | undefined): Promise<Remains> {
    let left: Remains = {}
    await eventually(async () => {
      const busy = this.#busy()
      const remains = await this.#ground.remains()
      left = { ...remains, ...(baseline === undefined ? {} : above(baseline, this.#footing())) }
      if (busy !== undefined) left = { ...left, 'busy pool': [busy] }
      return Object.keys(left).length === 0 ? undefined : 'something is left'
    }, this.#setting.settleMs ?? SETTLE_MS)
    return left
  }

  #busy(): string | undefined {
    const { leased, waiting, starting } = this.#sg.stats()
    return leased + waiting + starting === 0 ? undefined : JSON.stringify({ leased, waiting, starting })
  }

  #footing(): Footing {
    return footingOf(this.#ground.engine.living.size, this.#ground.processes())
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

  #tell(remains: Remains): void {
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

/** The most resident memory in that time. */
async function peakDuring(ms: number): Promise<number> {
  const until = performance.now() + ms
  let peak = 0
  for (let left = ms; left > 0; left = until - performance.now()) {
    await pause(Math.min(left, 250))
    peak = Math.max(peak, process.memoryUsage.rss())
  }
  return peak
}

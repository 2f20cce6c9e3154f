import { PassThrough } from 'node:stream'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { engineTable } from '../../../scripts/docs/engines.ts'
import { parseArgs } from '../../../src/cli/args.ts'
import type { Context } from '../../../src/cli/context.ts'
import { doctor } from '../../../src/cli/doctor.ts'
import { flagsFor, unknownFlag } from '../../../src/cli/flags.ts'
import { commandHelp } from '../../../src/cli/help.ts'
import { enginesToAsk, parseSandboxFlags } from '../../../src/cli/options.ts'
import { Output } from '../../../src/cli/output.ts'
import { prune, ps } from '../../../src/cli/ps.ts'
import { enginesFor, openFirstEngine } from '../../../src/engine-choice.ts'
import { type EngineRow, ENGINES, type EngineTable } from '../../../src/engines/index.ts'
import { SandglassError } from '../../../src/errors/index.ts'
import { checkOptions, type SandglassOptions } from '../../../src/options/index.ts'
import type { EngineModule, Resource, SandboxReport } from '../../../src/sandbox/index.ts'
import { fakeEngine } from '../../support/pool/fake-engine.ts'

interface MoonOptions {
  readonly crater?: string
}

const REPORT: SandboxReport = {
  engine: 'moon',
  usable: true,
  level: 'vm',
  reasons: [],
  limitsEnforced: ['wall'],
  network: 'none',
  capabilities: {
    processes: true,
    threads: false,
    preload: false,
    packages: false,
    toolsDir: false,
    systemCallFilter: false,
    uidPerSandbox: false,
  },
  probes: { crater: 'Tycho' },
}
const LIVING: Resource = { kind: 'rover', id: 'r1', sandbox: 's1', owner: 'alive', uid: null }
const ORPHAN: Resource = { kind: 'rover', id: 'r2', sandbox: 's2', owner: 'gone', uid: null }

/** The options of the created engines, in order. */
const made: (MoonOptions | undefined)[] = []
const moon: EngineModule<MoonOptions> = {
  makeEngine(options) {
    if (options?.crater === '') throw new TypeError('moon.crater: must not be empty')
    made.push(options)
    return { ...fakeEngine(), name: 'moon', report: () => Promise.resolve(REPORT) }
  },
  extendReport: (report) => Promise.resolve({ ...report, probes: { ...report.probes, phase: 'full' } }),
  reportLines: ({ crater, phase }) => [
    ['crater', String(crater)],
    ['phase', String(phase)],
  ],
  listResources: () => Promise.resolve([LIVING, ORPHAN]),
  pruneOrphans: () => Promise.resolve([ORPHAN]),
}

/** A complete row of the table of engines. */
const ROW: EngineRow = {
  wall: 'vacuum',
  machines: 'the Moon',
  python: 'none',
  workspaces: 'no',
  programs: 'no',
  sessions: 'no',
  checkpoints: 'no',
  pages: ['docker.md'],
  flags: { '--crater': { option: 'crater', value: 'NAME', help: 'where it lands, default Tycho' } },
  load: () => Promise.resolve(moon),
}
const WITH_MOON: EngineTable = { ...ENGINES, moon: ROW }
/** The table without real engines, which would start sandboxes. */
const MOON_ALONE: EngineTable = { moon: ROW }

/** The output of a command with these engines, and its exit code. */
async function output(
  command: (context: Context) => Promise<number>,
  engines: EngineTable,
): Promise<{ code: number; stdout: string; stderr: string }> {
  const streams = [new PassThrough(), new PassThrough()] as const
  const { signal } = new AbortController()
  const [stdout, stderr] = streams.map(
    (stream) => new Output(stream as unknown as NodeJS.WriteStream, signal, () => {}),
  ) as [Output, Output]
  const code = await command({ stdout, stderr, signal, isStdoutClosed: () => false, env: {}, engines })
  const [out = '', err = ''] = streams.map((stream) => String((stream.read() as Buffer | null) ?? ''))
  return { code, stdout: out, stderr: err }
}

describe('an engine that is one row of the table', () => {
  // Resources that killed processes left on this machine do not belong to this engine.
  beforeEach(() => void vi.stubEnv('TMPDIR', '/nonexistent'))
  afterEach(() => vi.unstubAllEnvs())

  test('is chosen by name and made with the options below that name', async () => {
    const options = { engine: 'moon', moon: { crater: 'Plato' } } as unknown as SandglassOptions
    checkOptions(options, WITH_MOON)
    made.length = 0
    const opened = await openFirstEngine(enginesFor(options, WITH_MOON), ({ name }) => Promise.resolve(name))
    expect([opened, made]).toEqual(['moon', [{ crater: 'Plato' }]])
  })

  test('checks its own options', async () => {
    const options = { engine: 'moon', moon: { crater: '' } } as unknown as SandglassOptions
    const [make] = enginesFor(options, WITH_MOON)
    await expect(make?.()).rejects.toThrow(new TypeError('moon.crater: must not be empty'))
  })

  test('is unknown without its row, by option and by name', () => {
    expect(() => checkOptions({ moon: {} } as SandglassOptions)).toThrow('moon')
    expect(() => enginesFor({ engine: 'moon' } as unknown as SandglassOptions)).toThrow(
      new SandglassError(
        'engine_unknown',
        'engine: unknown engine "moon". Choose one of: auto, local, docker, pyodide, kubernetes',
      ),
    )
    expect(() => enginesFor({ engine: 'sun' } as unknown as SandglassOptions, WITH_MOON)).toThrow(
      'Choose one of: auto, local, docker, pyodide, kubernetes, moon',
    )
  })

  test('is tried by auto in the order of the rows', async () => {
    const tried: string[] = []
    const opened = openFirstEngine(enginesFor({}, { moon: ROW, ...ENGINES }), ({ name }) => {
      tried.push(name)
      return name === 'docker' ? Promise.resolve(name) : Promise.reject(new SandglassError('engine_unavailable', 'no'))
    })
    expect([await opened, tried]).toEqual(['docker', ['moon', 'local', 'docker']])
  })

  test('that must be named is not tried by auto, and doctor and ps leave it out without its name', async () => {
    const named = { moon: ROW, mars: { ...ROW, isNamedOnly: true } }
    expect([enginesFor({}, named).length, enginesFor({ engine: 'mars' } as never, named).length]).toEqual([1, 1])
    const asked = (...words: string[]): readonly string[] =>
      enginesToAsk(parseArgs(words, flagsFor(named).doctor), named).map(({ name }) => name)
    expect([asked(), asked('--engine', 'mars'), asked('--engine', 'moon')]).toEqual([['moon'], ['mars'], ['moon']])
    const alone: EngineTable = { moon: { ...ROW, isNamedOnly: true } }
    const given = parseArgs(['--engine', 'moon'], flagsFor(alone).doctor)
    const probed = await output((context) => doctor(given, context), alone)
    expect([probed.code, probed.stdout.split('\n').at(-2)]).toEqual([0, '--engine moon works.'])
  })

  test('is an engine of the command line, with flags of its own', () => {
    const given = parseArgs(['--engine', 'moon', '--crater', 'Plato'], flagsFor(WITH_MOON).run)
    expect(parseSandboxFlags(given, WITH_MOON).options).toMatchObject({ engine: 'moon', moon: { crater: 'Plato' } })
    const foreign = parseArgs(['--crater', 'Plato'], flagsFor(WITH_MOON).run)
    expect(() => parseSandboxFlags(foreign, WITH_MOON)).toThrow(
      '--crater belongs to the engine moon: add --engine moon',
    )
    const misspelt = parseArgs(['--engine', 'mon'], flagsFor(WITH_MOON).run)
    expect(() => parseSandboxFlags(misspelt, WITH_MOON)).toThrow('unknown engine "mon". Did you mean "moon"?')
    expect(unknownFlag('--crater', 'ps', WITH_MOON)).toContain(
      'run, exec, shell, repl, batch, check, solve, agent, env and doctor have it',
    )
  })

  test('shares a flag with another engine', () => {
    const sharing = { ...ENGINES, moon: { ...ROW, flags: ENGINES.docker.flags } }
    const image = (engine: string): unknown =>
      parseSandboxFlags(parseArgs(['--engine', engine, '--image', 'x'], flagsFor(sharing).run), sharing).options
    expect(image('moon')).toMatchObject({ engine: 'moon', moon: { image: 'x' } })
    expect(image('docker')).toMatchObject({ engine: 'docker', docker: { image: 'x' } })
    expect(() => image('local')).toThrow(
      'belongs to the engine docker or kubernetes or moon: add --engine docker or --engine kubernetes or --engine moon',
    )
  })

  test.each(['run', 'batch', 'check', 'solve'] as const)('is in the help of %s', (command) => {
    const help = commandHelp(command, WITH_MOON)
    expect(help).toMatch(/--engine NAME +auto, local, docker, pyodide, kubernetes or moon;/)
    expect(help).toMatch(/--crater NAME +where it lands, default Tycho; with --engine moon\n/)
  })

  test('is probed by doctor, with its own lines', async () => {
    const none = parseArgs([], {})
    const { code, stdout } = await output((context) => doctor(none, context), MOON_ALONE)
    expect([code, stdout]).toEqual([
      0,
      `✓ moon      vm
  crater      Tycho
  phase       full
  limits      wall
  network     none
  has         processes

--engine auto takes moon.
`,
    ])
    const json = parseArgs(['--json'], { '--json': {} })
    const asJson = await output((context) => doctor(json, context), MOON_ALONE)
    expect(JSON.parse(asJson.stdout)).toMatchObject({ auto: 'moon', engines: [{ name: 'moon', level: 'vm' }] })
  })

  test('has its resources listed by ps, and its orphans removed by prune', async () => {
    const json = parseArgs(['--json'], { '--json': {} })
    const listed = await output((context) => ps(json, context), MOON_ALONE)
    const pruned = await output((context) => prune(json, context), MOON_ALONE)
    expect([listed, pruned].map(({ code, stdout }) => [code, JSON.parse(stdout) as unknown])).toEqual([
      [0, [LIVING, ORPHAN]],
      [0, [ORPHAN]],
    ])
  })

  test('that cannot list its resources is named, and the others are listed', async () => {
    const error = new SandglassError('docker_unreachable', 'the sun is in the way')
    const sun: EngineRow = {
      ...ROW,
      load: () => Promise.resolve({ ...moon, listResources: () => Promise.reject(error) }),
    }
    const { code, stdout, stderr } = await output((context) => ps(parseArgs([], {}), context), { sun, moon: ROW })
    expect([code, stdout.split('\n').length, stderr]).toEqual([
      7,
      4,
      'sandglass: cannot list the resources of the engine sun: the sun is in the way\n',
    ])
  })

  test('is a row of the table in the docs', () => {
    expect(engineTable(WITH_MOON)).toContain('| `moon` | vacuum | the Moon |')
  })
})

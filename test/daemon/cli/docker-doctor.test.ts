import { chmodSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { GVISOR, type PrivateDaemon, requirePrivateDaemon, startDaemon } from '../../support/docker-daemon.ts'
import { requireDockerEngine } from '../../support/docker-engine.ts'
import { makeCli } from '../../support/cli/sandglass.ts'

const { skip: noDocker, image } = await requireDockerEngine()
const { skip: noDaemon } = requirePrivateDaemon()
const { skip: noGvisor } = requirePrivateDaemon({ gvisor: true })
const STARTING_MS = 240_000
const ALL_LIMITS = ['memory', 'pids', 'cpu', 'disk', 'output', 'wall']

const cli = makeCli()
afterAll(() => cli[Symbol.dispose]())

interface Findings {
  readonly name: string
  readonly usable: boolean
  readonly level: string
  readonly limits_enforced: readonly string[]
  readonly network: string | null
  readonly capabilities: Readonly<Record<string, boolean>>
  readonly reasons: readonly {
    readonly severity: string
    readonly code: string
    readonly message: string
    readonly remedy: string
  }[]
  readonly probes: Readonly<Record<string, unknown>>
}

/** The findings of doctor for the engine docker with the daemon at an address. */
async function findings(host: string, wrapper: readonly string[] = []): Promise<Findings> {
  const { stdout } = await cli.run(['doctor', '--json'], { env: { DOCKER_HOST: host }, wrapper })
  const { engines } = JSON.parse(stdout) as { engines: Findings[] }
  const [docker] = engines.filter(({ name }) => name === 'docker')
  if (docker === undefined) throw new Error(`doctor does not mention docker: ${stdout}`)
  return docker
}

/** The lines of the engine docker in the text output of doctor. */
async function readDoctor(host: string): Promise<string> {
  const { stdout } = await cli.run(['doctor'], { env: { DOCKER_HOST: host } })
  return stdout.split('\n\n').find((block) => /^\S docker/.test(block)) ?? stdout
}

/** Checks that an unusable engine has one reason and no other claims. */
function expectUnusable(found: Findings, code: string, message: RegExp, remedy: RegExp): void {
  const { usable, level, limits_enforced: limits, network, capabilities, probes } = found
  const has = Object.values(capabilities).filter(Boolean)
  expect({ usable, level, limits, network, has, probes }).toEqual({
    usable: false,
    level: 'none',
    limits: [],
    network: null,
    has: [],
    probes: {},
  })
  expect(found.reasons).toEqual([
    {
      severity: 'error',
      code,
      message: expect.stringMatching(message) as string,
      remedy: expect.stringMatching(remedy) as string,
    },
  ])
}

/** The image on the daemons of these tests: the one built here, or the default one if the machine has it. */
const replaced = image === 'python:3.12-slim' ? [] : ['image_replaced']

describe.skipIf(noDocker || noDaemon)('doctor', () => {
  let daemon: PrivateDaemon
  beforeAll(async () => {
    daemon = await startDaemon()
    await daemon.load(image)
  }, STARTING_MS)
  afterAll(() => daemon?.close(), STARTING_MS)

  test('reports for a running daemon: a container, every limit, no network, the image', async () => {
    const [found, text] = await Promise.all([findings(daemon.host), readDoctor(daemon.host)])
    const { usable, level, limits_enforced: limits, network, reasons, probes } = found
    const codes = reasons.map(({ severity, code }) => [severity, code])
    expect({ usable, level, limits, network, codes }).toEqual({
      usable: true,
      level: 'container',
      limits: ALL_LIMITS,
      network: 'none',
      codes: replaced.map((code) => ['warning', code]),
    })
    expect(probes).toMatchObject({ daemon: daemon.host, image, runtime_default: 'runc' })
    expect(probes['runtimes']).toContain('runc')
    expect(Object.keys(probes)).not.toContain('runtime_levels')
    expect(text).toMatch(/^✓ docker +container\n[^]*runtimes +[^\n]*runc \(default\)/)
  })

  test('tells another user that the socket is closed to them', async () => {
    chmodSync(daemon.directory, 0o711)
    // Another uid that may read this checkout and write nowhere.
    const stranger = ['--reuid=12345', '--regid=12345', '--clear-groups']
    const reader = ['--inh-caps=+dac_read_search', '--ambient-caps=+dac_read_search']
    const found = await findings(daemon.host, ['setpriv', ...stranger, ...reader, '--'])
    expectUnusable(found, 'docker_permission', /^no permission on Docker's socket \(unix:/, /group docker/)
  })

  test.each([
    ['stopped', () => daemon.stop()],
    ['killed', () => daemon.kill()],
  ])(
    'reports that a daemon was %s, and that it is back',
    async (_how, end) => {
      await end()
      const [found, text] = await Promise.all([findings(daemon.host), readDoctor(daemon.host)])
      expectUnusable(found, 'docker_unreachable', /^no Docker daemon at unix:/, /start Docker/)
      expect(text).toMatch(/^✗ docker +not usable\n +why +no Docker daemon at unix:/)
      await daemon.restart()
      expect((await findings(daemon.host)).usable).toBe(true)
    },
    STARTING_MS,
  )
})

describe.skipIf(noDocker || noGvisor).concurrent('doctor, where gVisor is registered', () => {
  const withRuntimes = async (flags: readonly string[] = []): Promise<PrivateDaemon> => {
    const runtimes = { ...GVISOR, 'runsc-by-name': { path: 'runc' }, broken: { path: '/no/such/program' } }
    const daemon = await startDaemon({ runtimes, flags })
    await daemon.load(image)
    return daemon
  }

  test(
    'tries each runtime under any name, and reports its isolation and which ones cannot be used',
    async () => {
      await using daemon = await withRuntimes()
      const [{ usable, level, reasons, probes }, text] = await Promise.all([
        findings(daemon.host),
        readDoctor(daemon.host),
      ])
      expect({ usable, level }).toEqual({ usable: true, level: 'container' })
      expect(probes['runtimes']).toEqual(expect.arrayContaining(['broken', 'runc', 'runsc', 'runsc-by-name']))
      expect(probes['runtime_levels']).toEqual(['runsc: gvisor', 'runsc-by-name: container'])
      expect(reasons.filter(({ code }) => !replaced.includes(code))).toEqual([
        {
          severity: 'warning',
          code: 'runtime_unknown',
          message: expect.stringMatching(/^the runtime broken: /) as string,
          remedy: expect.stringContaining('docs/docker.md') as string,
        },
      ])
      expect(text).toMatch(/runtimes +broken, .*runc \(default\), runsc \(gvisor\)/)
    },
    STARTING_MS,
  )

  test(
    'reports the level gvisor where it is the default runtime',
    async () => {
      await using daemon = await withRuntimes(['--default-runtime=runsc'])
      const { usable, level, network, probes } = await findings(daemon.host)
      expect({ usable, level, network }).toEqual({ usable: true, level: 'gvisor', network: 'none' })
      expect(probes).toMatchObject({ runtime_default: 'runsc', gvisor: true, sealed: true })
    },
    STARTING_MS,
  )
})

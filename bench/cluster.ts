/**
 * Prints the figures of docs/kubernetes.md and docs/scale.md, by the current context of KUBECONFIG: `npm run bench:cluster`.
 * BENCH_KUBERNETES has options of the engine as JSON, BENCH_DOCKER_IMAGE and DOCKER_HOST are those of `npm run bench`, and BENCH_KUBELET
 * is the address of the kubelet where the API server does not pass requests on to it. `kubectl` must be on PATH. `-- --rounds N` sets the
 * number of warm runs (default: 200, 0 for none of the steps but the last), `-- --many N` asks for so many sandboxes at once (default: 200, 0 for none), on a node that fits 20.
 */
import { execFile } from 'node:child_process'
import { subscribe } from 'node:diagnostics_channel'
import { promisify } from 'node:util'
import { z } from 'zod'
import { createSandglass, defineTool, dockerEngine, type Sandglass, type SandboxEngine } from '../src/index.ts'
import { kubernetesEngine, type KubernetesEngineOptions } from '../src/engines/kubernetes/index.ts'
import { machine } from '../test/support/machine.ts'
import { coldStart } from './latency.ts'
import { measureInTurns, measureMs, pause, summarize, type Summary } from './measure.ts'
import { ms, type Row, table } from './row.ts'
import { resolveForBench } from './subject.ts'

const run = promisify(execFile)
const SCRIPT = 'pass'
const CALL = 'ask(n=1)'
const OPTIONS = JSON.parse(process.env['BENCH_KUBERNETES'] ?? '{}') as KubernetesEngineOptions
const IMAGE = OPTIONS.image ?? 'python:3.12-slim'
const TITLES = ['docker', 'kubernetes']
const [WARM_UP, COLD_ROUNDS, BUSY_MS, IDLE_PODS] = [20, 7, 5000, 4]

const ask = defineTool({
  name: 'ask',
  description: 'Answers.',
  effect: 'read',
  input: z.object({ n: z.number() }),
  output: z.number(),
  execute: ({ n }) => n,
})

function makeEngines(): Record<string, SandboxEngine> {
  const image = process.env['BENCH_DOCKER_IMAGE']
  return { docker: dockerEngine(image === undefined ? {} : { image }), kubernetes: kubernetesEngine(OPTIONS) }
}

async function warm(rounds: number): Promise<Row[]> {
  const engines = makeEngines()
  const opened = await Promise.all(
    Object.entries(engines).map(async ([name, engine]): Promise<[string, Sandglass]> => {
      return [name, await createSandglass({ engine, poolSize: 1, maxUses: 1_000_000 })]
    }),
  )
  const series = (script: string, tools = {}): Record<string, () => Promise<number>> =>
    Object.fromEntries(opened.map(([name, sg]) => [name, () => measureMs(() => sg.run(script, tools))]))
  const tools = { tools: [ask] }
  await measureInTurns(WARM_UP, 5, series(SCRIPT))
  const runs = await measureInTurns(rounds, 5, series(SCRIPT))
  const calls = await measureInTurns(rounds, 5, series(CALL, tools))
  for (const [, sg] of opened) await sg.close()
  for (const engine of Object.values(engines)) await engine.close()
  const [docker, kubernetes] = [p50Of(runs, 'docker'), p50Of(runs, 'kubernetes')]
  return [
    {
      what: `warm \`sg.run\`, 5 ms between runs, p50 (n=${rounds})`,
      figure: [ms(docker), `${ms(kubernetes)} = ${(kubernetes / docker).toFixed(2)}x`],
      bound: '<= 3x docker',
      met: kubernetes <= 3 * docker,
    },
    { what: 'the same, p95', figure: TITLES.map((name) => ms(runs[name]?.p95 ?? Number.NaN)) },
    { what: 'the same with one call of a host tool, p50', figure: TITLES.map((name) => ms(p50Of(calls, name))) },
    ...(await cold(kubernetes)),
  ]
}

function p50Of(found: Record<string, Summary>, name: string): number {
  return found[name]?.p50 ?? Number.NaN
}

async function cold(warmMs: number): Promise<Row[]> {
  const engines = makeEngines()
  const series = Object.fromEntries(Object.entries(engines).map(([name, one]) => [name, () => coldStart(one)]))
  await measureInTurns(1, 0, series)
  let count = 0
  const kubectl = (): Promise<number> => measureMs(() => runByKubectl(`bench-${process.pid}-${(count += 1)}`))
  const found = await measureInTurns(COLD_ROUNDS, 500, { ...series, kubectl })
  for (const engine of Object.values(engines)) await engine.close()
  const plain = p50Of(found, 'kubectl')
  const times = plain / warmMs
  return [
    {
      what: `cold sandbox to first result, p50 (n=${COLD_ROUNDS})`,
      figure: TITLES.map((name) => ms(p50Of(found, name))),
    },
    {
      what: '`kubectl run --rm --attach` of `python3 -c pass`, p50',
      figure: ['', `${ms(plain)} = ${times.toFixed(0)}x warm`],
      bound: '>= 100x warm',
      met: times >= 100,
    },
  ]
}

async function runByKubectl(name: string): Promise<void> {
  const flags = ['--rm', '--attach', '--quiet', '--restart=Never', `--image=${IMAGE}`, ...inNamespace()]
  // The same user as a namespace with the level `restricted` asks for.
  const overrides = JSON.stringify({
    spec: {
      terminationGracePeriodSeconds: 0,
      securityContext: { runAsNonRoot: true, runAsUser: 1000, seccompProfile: { type: 'RuntimeDefault' } },
      containers: [
        {
          name,
          image: IMAGE,
          command: ['python3', '-c', 'pass'],
          securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
        },
      ],
    },
  })
  await run('kubectl', ['run', name, ...flags, `--overrides=${overrides}`])
}

function inNamespace(): readonly string[] {
  return OPTIONS.namespace === undefined ? [] : [`--namespace=${OPTIONS.namespace}`]
}

/** Runs that follow each other at once, in each of some sandboxes. */
async function busy(count: number): Promise<Row> {
  await using engine = disposable(kubernetesEngine(OPTIONS))
  await using sg = await createSandglass({ engine, poolSize: count, maxOverflow: 0, maxUses: 1_000_000 })
  await Promise.all(Array.from({ length: count }, () => sg.run('import time; time.sleep(1)')))
  const cpu = process.cpuUsage()
  const start = performance.now()
  const counts = await Promise.all(
    Array.from({ length: count }, async () => {
      let runs = 0
      for (; performance.now() - start < BUSY_MS; runs += 1) await sg.run(SCRIPT)
      return runs
    }),
  )
  const seconds = (performance.now() - start) / 1000
  const runs = counts.reduce((sum, one) => sum + one, 0)
  const { user, system } = process.cpuUsage(cpu)
  const cpuMs = (user + system) / 1000 / runs
  return {
    what: `runs that follow each other at once, in ${count} sandbox${count === 1 ? '' : 'es'}`,
    figure: ['', `${(runs / seconds).toFixed(0)} runs/s, ${cpuMs.toFixed(2)} ms of the host's CPU each`],
  }
}

function disposable(engine: SandboxEngine): SandboxEngine & AsyncDisposable {
  return { ...engine, [Symbol.asyncDispose]: () => engine.close() }
}

interface Stats {
  readonly pods: readonly {
    readonly podRef: { readonly name: string }
    readonly memory?: { readonly workingSetBytes?: number }
    readonly containers: readonly { readonly name: string; readonly memory?: { readonly workingSetBytes?: number } }[]
  }[]
}

/** The memory of idle sandboxes, as their kubelet counts it. */
async function memory(): Promise<Row> {
  const engine = kubernetesEngine(OPTIONS)
  const { spec, execute } = resolveForBench()
  const sandboxes = await Promise.all(Array.from({ length: IDLE_PODS }, () => engine.create(spec)))
  for (const sandbox of sandboxes) await execute(sandbox, SCRIPT)
  // A kubelet measures containers every 10 to 15 s.
  await pause(20_000)
  const first = sandboxes[0]?.id ?? ''
  const { stdout: node } = await run('kubectl', [
    'get',
    'pod',
    first,
    ...inNamespace(),
    '-o',
    'jsonpath={.spec.nodeName}',
  ])
  const kubelet = process.env['BENCH_KUBELET']
  const where =
    kubelet === undefined ? [`/api/v1/nodes/${node}/proxy/stats/summary`] : ['/stats/summary', `--server=${kubelet}`]
  const { stdout } = await run('kubectl', ['get', '--raw', ...where], { maxBuffer: 1 << 26 })
  const names = sandboxes.map(({ id }) => id)
  const pods = (JSON.parse(stdout) as Stats).pods.filter(({ podRef }) => names.includes(podRef.name))
  await Promise.all(sandboxes.map((sandbox) => sandbox.destroy()))
  await engine.close()
  const typical = (values: readonly (number | undefined)[]): string =>
    `${(summarize(values.map((value) => value ?? Number.NaN)).p50 / 2 ** 20).toFixed(1)} MiB`
  const parts = ['sandbox', 'relay'].map((part) => {
    const found = pods.map(({ containers }) => containers.find(({ name }) => name === part)?.memory?.workingSetBytes)
    return `${part} ${typical(found)}`
  })
  return {
    what: `memory of an idle sandbox after a run, p50 of ${pods.length}`,
    figure: ['', `${typical(pods.map((pod) => pod.memory?.workingSetBytes))} (${parts.join(', ')})`],
  }
}

/** More sandboxes at once than a node has room for: each that is served runs a script, and goes. */
async function many(count: number): Promise<Row[]> {
  const times: number[] = []
  for (const channel of ['undici:request:create', 'http.client.request.start']) {
    subscribe(channel, () => times.push(performance.now()))
  }
  const { stdout } = await run('kubectl', ['get', 'nodes', '-o', 'jsonpath={.items[0].status.allocatable.cpu}'])
  const cpus = stdout.endsWith('m') ? Number.parseInt(stdout, 10) / 1000 : Number(stdout)
  // The container beside a sandbox requests 0.01.
  const engine = kubernetesEngine({ ...OPTIONS, cpuRequest: Math.floor((cpus / 20 - 0.01) * 1000) / 1000 })
  const { spec, execute } = resolveForBench()
  const start = performance.now()
  const outcomes = await Promise.all(
    Array.from({ length: count }, async () => {
      try {
        const sandbox = await engine.create(spec)
        const { status } = await execute(sandbox, 'import time; time.sleep(5)')
        await sandbox.destroy()
        return status
      } catch (error) {
        return (error as { code?: string }).code ?? String(error)
      }
    }),
  )
  const tookMs = performance.now() - start
  await engine.close()
  const busiest = Math.max(...times.map((at) => times.filter((one) => one >= at && one < at + 1000).length))
  const counts = Object.entries(Object.groupBy(outcomes, (outcome) => outcome))
  return [
    {
      what: `${count} sandboxes asked for at once on a node that fits 20, each for a run of 5 s`,
      figure: [
        '',
        `${counts.map(([outcome, all]) => `${all?.length} ${outcome}`).join(', ')} in ${(tookMs / 1000).toFixed(0)} s`,
      ],
    },
    {
      what: 'the same: requests to the API server, and in the busiest second',
      figure: ['', `${(times.length / count).toFixed(1)} for each, ${busiest}`],
      bound: '< 100 in a second',
      met: times.length > 0 && busiest < 100,
    },
  ]
}

function flag(name: string, fallback: number): number {
  const at = process.argv.indexOf(name)
  return at === -1 ? fallback : Number(process.argv[at + 1])
}

const rounds = flag('--rounds', 200)
const rows = rounds === 0 ? [] : [...(await warm(rounds)), await busy(1), await busy(4), await memory()]
const count = flag('--many', 200)
if (count > 0) rows.push(...(await many(count)))
process.stdout.write(`Machine: ${machine()}\nVersions: Node ${process.version}\n\n${table(rows, TITLES)}\n`)

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { lstatSync, readdirSync, readFileSync, statfsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { eventually, steadily } from '../../../test/support/eventually.ts'
import { allProcesses, processOf } from '../../../test/support/processes.ts'
import { type Answer, describeAnswer } from './answer.ts'
import { everythingOf } from './answer-checks.ts'
import type { EngineUnderTest } from './engine.ts'
import { valueOf } from './fixtures.ts'
import { firstOf, type Problem, type CaseState, type Verify, type Watch } from './case-state.ts'

/** Invariants of the host. Each is prepared before the case and checked after it. */
export const INVARIANTS: ReadonlyMap<string, Watch> = new Map<string, Watch>([
  ['no_leaked_processes', noLeakedProcesses],
  ['no_leaked_containers', noLeakedContainers],
  ['host_process_alive', hostProcessAlive],
  ['other_sandboxes_alive', otherSandboxesAlive],
  ['host_disk_recovers', hostDiskRecovers],
  ['host_load_recovers', hostLoadRecovers],
  ['workspace_removed', workspaceRemoved],
  ['host_dev_shm_unchanged', hostDevShmUnchanged],
  ['no_prototype_pollution', noPrototypePollution],
  ['canary_file_unchanged', canaryFileUnchanged],
  ['no_file_outside_workspace_changed', noFileOutsideChanged],
  ['results_not_swapped', resultsNotSwapped],
  ['no_core_file', noCoreFile],
  ['secret_not_in_outputs', secretNotInOutputs],
  ['secret_not_in_process_args', secretNotInProcessArgs],
  ['secret_not_in_docker_inspect', secretNotInContainers],
])

/** The warm sandbox of the case and all sandboxes that served its runs. */
function sandboxesOf({ warm }: CaseState, answers: readonly Answer[]): string[] {
  const served = answers.flatMap(({ result }) => result?.sandbox.id ?? [])
  return [...new Set([...(warm === undefined ? [] : [warm.sandboxId]), ...served])]
}

/** The process for the next run is forked after the answer. Before that, a count could mistake a leaked process for it. */
const STEADY_MS = 300

/** Within two seconds after the answer, a sandbox is gone or has no more processes than an idle one, and stays so. */
function noLeakedProcesses(state: CaseState): Verify {
  const { engine } = state.context
  const atRest = state.warm?.processes ?? 0
  return (answers) =>
    steadily(
      () => {
        const left = sandboxesOf(state, answers).map((id) => engine.processesOf(id))
        return firstOf(
          left.map((processes) => {
            const harness = processes.filter(({ insidePid }) => insidePid === 1)
            if (processes.length === 0 || (processes.length <= atRest && harness.length === 1)) return undefined
            return `${processes.length} processes are left, an idle sandbox has ${atRest}: ${JSON.stringify(processes)}`
          }),
        )
      },
      STEADY_MS,
      2000,
    )
}

/** Closes the pool of the case first: containers that remain then are orphans. */
function noLeakedContainers({ context: { engine }, warm, runner }: CaseState): Verify {
  if (warm === undefined) return () => 'the case must have its own sandbox'
  const look = engine.watchContainers(warm.sandboxId)
  if (look === null) return () => undefined
  const before = look()
  return async () => {
    if (!before.includes(warm.sandboxId)) return `the list of containers does not have ${warm.sandboxId}`
    await runner.close()
    return eventually(() => {
      const left = look()
      return left.length === 0 ? undefined : `containers are left: ${left.join(', ')}`
    }, 2000)
  }
}

/** Starts a process on the host with the uid of the sandbox. The script must not be able to kill it. */
async function hostProcessAlive({ context: { engine }, warm }: CaseState): Promise<Verify> {
  const uid = engine.processesOf(warm?.sandboxId ?? '')[0]?.uid
  const bystander = spawn('sleep', ['60'], {
    stdio: 'ignore',
    ...(uid === undefined || process.getuid?.() !== 0 ? {} : { uid, gid: uid }),
  })
  await once(bystander, 'spawn')
  return () => {
    const alive = processOf(bystander.pid ?? 0) !== undefined && processOf(process.pid) !== undefined
    bystander.kill('SIGKILL')
    return alive ? undefined : 'a process of the host was killed'
  }
}

async function otherSandboxesAlive({ context }: CaseState): Promise<Verify> {
  const other = await context.engine.open({ poolSize: 1 })
  const waiting = other.run('import time\ntime.sleep(1.5)\nemit_result("alive")')
  return async () => {
    const { finalData, error } = await waiting
    await other.close()
    return finalData === 'alive' ? undefined : `another sandbox did not answer: ${error}`
  }
}

const SLACK_BYTES = 48 * 1024 * 1024

function hostDiskRecovers({ context: { engine } }: CaseState): Verify {
  const free = (): number => {
    const { bavail, bsize } = statfsSync(engine.hostPath)
    return bavail * bsize
  }
  const before = free()
  return () =>
    eventually(() => {
      const lost = before - free()
      return lost < SLACK_BYTES ? undefined : `${lost} bytes of the host's disk were not freed`
    }, 30_000)
}

const REST_MS = 2000
/** One percent of a CPU, for the work of the harness between runs on a busy machine. */
const REST_CPU_MS = 20

function hostLoadRecovers(state: CaseState): Verify {
  const { engine } = state.context
  return (answers) =>
    eventually(async () => {
      const ids = sandboxesOf(state, answers).filter((id) => engine.processesOf(id).length > 0)
      const before = sumOfCpu(engine, ids)
      if (ids.length > 0) await sleep(REST_MS)
      const used = sumOfCpu(engine, ids) - before
      return used <= REST_CPU_MS ? undefined : `the sandbox used ${used} ms of CPU in ${REST_MS} ms of rest`
    }, 3 * REST_MS)
}

function sumOfCpu(engine: EngineUnderTest, ids: readonly string[]): number {
  return ids.reduce((sum, id) => sum + engine.cpuMsOf(id), 0)
}

const LIST_EVERYTHING = `import os
found = []
for root in ('/workspace', '/tmp', '/var/tmp', '/dev/shm'):
    if os.path.isdir(root):
        found += [os.path.join(root, name) for name in os.listdir(root)]
emit_result(found)`

function workspaceRemoved(state: CaseState): Verify {
  return async (answers) => {
    const { engine } = state.context
    const onHost = await eventually(() => {
      const left = engine.runDirectories()
      return left.length === 0 ? undefined : `left on the host: ${left.join(', ')}`
    }, 30_000)
    if (onHost !== undefined) return onHost
    const id = answers[0]?.result?.sandbox.id ?? ''
    const next = await state.runner.run(LIST_EVERYTHING, { ...state.options, sandboxId: id })
    const empty = Array.isArray(next.result?.finalData) && next.result.finalData.length === 0
    return empty ? undefined : `the next workspace is not empty: ${describeAnswer(next)}`
  }
}

function hostDevShmUnchanged(): Verify {
  const before = new Set(readdirSync('/dev/shm'))
  return () => {
    // Other programs on this machine use /dev/shm as well, so only names that the case writes count.
    const added = readdirSync('/dev/shm').filter((name) => !before.has(name) && name.startsWith('sem.research'))
    return added.length === 0 ? undefined : `in the host's /dev/shm: ${added.join(', ')}`
  }
}

function noPrototypePollution(): Verify {
  return () => ('polluted' in {} ? 'Object.prototype was changed' : undefined)
}

function canaryFileUnchanged({ context: { fixtures } }: CaseState): Verify {
  const path = valueOf(fixtures, 'CANARY_FILE')
  const before = readFileSync(path)
  return () => (readFileSync(path).equals(before) ? undefined : 'the canary file was changed')
}

/** Compares names, sizes and times of likely targets: the fixtures on the host and /etc. */
function noFileOutsideChanged({ context: { fixtures } }: CaseState): Verify {
  const places = [dirname(valueOf(fixtures, 'CANARY_FILE')), '/etc']
  const before = places.map(stateOf)
  return () => {
    const changed = places.filter((place, index) => stateOf(place) !== before[index])
    return changed.length === 0 ? undefined : `something changed below ${changed.join(' and ')}`
  }
}

function stateOf(directory: string): string {
  const names = readdirSync(directory, { recursive: true, encoding: 'utf8' }).toSorted()
  return ['', ...names]
    .map((name) => {
      const found = lstatSync(join(directory, name), { throwIfNoEntry: false })
      return `${name} ${found?.ino} ${found?.mode} ${found?.size} ${found?.mtimeMs}`
    })
    .join('\n')
}

/** Each run emits its tag, `a` for the first and `b` for the second. Its result must be its own tag. */
function resultsNotSwapped({ case: { id } }: CaseState): Verify {
  return (answers) => {
    const received = answers.flatMap(({ result }) => (result?.success === true ? [result.finalData] : []))
    const wanted = answers.flatMap(({ result }, index) => (result?.success === true ? ['ab'.charAt(index)] : []))
    return received.join() === wanted.join() && received.length > 0
      ? undefined
      : `${id}: got ${received.join()} for ${wanted.join()}`
  }
}

function noCoreFile({ context: { engine } }: CaseState): Verify {
  return (answers) => {
    const collected = answers.flatMap(({ result }) => result?.files.map(({ path }) => path) ?? [])
    const left = [...collected, ...engine.runDirectories()].filter((path) => /(^|\/)core/.test(path))
    return left.length === 0 ? undefined : `core files: ${left.join(', ')}`
  }
}

function secretNotInOutputs({ options }: CaseState): Verify {
  return (answers) => {
    const secrets = Object.values(options.secrets ?? {})
    if (secrets.length === 0) return 'the case has no secret'
    const shownBy = answers.filter((answer) => secrets.some((secret) => everythingOf(answer).includes(secret)))
    return shownBy.length === 0 ? undefined : 'an answer contains a secret'
  }
}

function secretNotInProcessArgs(state: CaseState): Verify {
  return async () =>
    searchWhileSecretIsUsed(state, () => {
      const files = allProcesses().flatMap(({ pid }) => [`/proc/${pid}/cmdline`, `/proc/${pid}/environ`])
      return files.map((path) => ({ where: path, text: readAll(path) }))
    })
}

/** Searches everything that the daemon reports about a container: inspection, processes, log, changed files, image layers. */
function secretNotInContainers(state: CaseState): Verify {
  const { engine } = state.context
  return async () =>
    searchWhileSecretIsUsed(state, (sandboxId) => {
      const report = engine.inspectFromHost(sandboxId)
      return report === null ? null : [{ where: 'the report of the daemon about the container', text: report }]
    })
}

const WATCHED_SAMPLES = 5
const WATCHED_MS = 1000

/**
 * Starts a longer run with the same secret and samples it for at least one second, because the run of the case may end
 * too early. `look` returns null when the engine has nothing to inspect.
 */
async function searchWhileSecretIsUsed(
  { runner, options }: CaseState,
  look: (sandboxId: string) => readonly { readonly where: string; readonly text: string }[] | null,
): Promise<Problem> {
  const secrets = Object.values(options.secrets ?? {})
  if (secrets.length === 0) return 'the case has no secret'
  const enough = new AbortController()
  const begun = Promise.withResolvers<string>()
  const run = runner
    .run('import os, time\nemit_log(str(len(os.environ)))\ntime.sleep(60)', {
      ...options,
      signal: enough.signal,
      onEvent: (event) => {
        if (event.type === 'started') begun.resolve(event.sandboxId)
      },
    })
    .finally(() => begun.resolve(''))
  const sandboxId = await begun.promise
  let seen: string | undefined
  const until = performance.now() + WATCHED_MS
  for (let sample = 0; seen === undefined && (sample < WATCHED_SAMPLES || performance.now() < until); sample += 1) {
    const texts = look(sandboxId)
    if (texts === null) break
    seen = texts.find(({ text }) => secrets.some((secret) => text.includes(secret)))?.where
    await sleep(20)
  }
  enough.abort()
  const answer = await run
  if (answer.result?.status !== 'cancelled') return `the sampled run did not stay active: ${describeAnswer(answer)}`
  return seen === undefined ? undefined : `${seen} contains a secret`
}

function readAll(path: string): string {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return ''
  }
}

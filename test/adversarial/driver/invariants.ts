import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { lstatSync, readdirSync, readFileSync, statfsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { eventually, steadily } from '../../support/eventually.ts'
import { allProcesses, processOf } from '../../support/processes.ts'
import { type Answer, shown } from './answer.ts'
import { everythingOf } from './answer-checks.ts'
import type { EngineUnderTest } from './engine.ts'
import { valueOf } from './fixtures.ts'
import { firstOf, type Problem, type Stage, type Verify, type Watch } from './stage.ts'

/** The host invariants, each prepared before the case and judged after it. */
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

/** The sandbox that the case met, and those that served it. */
function sandboxesOf({ warm }: Stage, answers: readonly Answer[]): string[] {
  const served = answers.flatMap(({ result }) => result?.sandbox.id ?? [])
  return [...new Set([...(warm === undefined ? [] : [warm.sandboxId]), ...served])]
}

/** Until the process for the next run is forked, which is after the answer, a survivor would pass for it. */
const STEADY_MS = 300

/** Two seconds after the answer at the latest a sandbox is gone, or holds no more than an idle one, and stays so. */
function noLeakedProcesses(stage: Stage): Verify {
  const { engine } = stage.ground
  const atRest = stage.warm?.processes ?? 0
  return (answers) =>
    steadily(
      () => {
        const left = sandboxesOf(stage, answers).map((id) => engine.processesOf(id))
        return firstOf(
          left.map((processes) => {
            const harness = processes.filter(({ insidePid }) => insidePid === 1)
            if (processes.length === 0 || (processes.length <= atRest && harness.length === 1)) return undefined
            return `${processes.length} processes are left, ${atRest} is what an idle sandbox has: ${JSON.stringify(processes)}`
          }),
        )
      },
      STEADY_MS,
      2000,
    )
}

/** Looked at when the pool of the case is closed, so that what is there then was forgotten. */
function noLeakedContainers({ ground: { engine }, warm, runner }: Stage): Verify {
  if (warm === undefined) return () => 'the case has no sandbox of its own'
  const look = engine.watchContainers(warm.sandboxId)
  if (look === null) return () => undefined
  const before = look()
  return async () => {
    if (!before.includes(warm.sandboxId)) return `the look at containers misses ${warm.sandboxId}`
    await runner.close()
    return eventually(() => {
      const left = look()
      return left.length === 0 ? undefined : `containers are left: ${left.join(', ')}`
    }, 2000)
  }
}

/** A process of the host with the very uid that the sandbox has there is not reached. */
async function hostProcessAlive({ ground: { engine }, warm }: Stage): Promise<Verify> {
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

async function otherSandboxesAlive({ ground }: Stage): Promise<Verify> {
  const other = await ground.engine.open({ poolSize: 1 })
  const waiting = other.run('import time\ntime.sleep(1.5)\nemit_result("alive")')
  return async () => {
    const { finalData, error } = await waiting
    await other.close()
    return finalData === 'alive' ? undefined : `another sandbox did not answer: ${error}`
  }
}

const SLACK_BYTES = 48 * 1024 * 1024

function hostDiskRecovers({ ground: { engine } }: Stage): Verify {
  const free = (): number => {
    const { bavail, bsize } = statfsSync(engine.hostPath)
    return bavail * bsize
  }
  const before = free()
  return () =>
    eventually(() => {
      const lost = before - free()
      return lost < SLACK_BYTES ? undefined : `${lost} bytes of the host's disk did not come back`
    }, 30_000)
}

const REST_MS = 2000
/** A hundredth of a CPU: the harness's own work between runs, on a busy machine. */
const REST_CPU_MS = 20

function hostLoadRecovers(stage: Stage): Verify {
  const { engine } = stage.ground
  return (answers) =>
    eventually(async () => {
      const ids = sandboxesOf(stage, answers).filter((id) => engine.processesOf(id).length > 0)
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

function workspaceRemoved(stage: Stage): Verify {
  return async (answers) => {
    const { engine } = stage.ground
    const onHost = await eventually(() => {
      const left = engine.runDirectories()
      return left.length === 0 ? undefined : `left on the host: ${left.join(', ')}`
    }, 30_000)
    if (onHost !== undefined) return onHost
    const id = answers[0]?.result?.sandbox.id ?? ''
    const next = await stage.runner.run(LIST_EVERYTHING, { ...stage.options, sandboxId: id })
    const empty = Array.isArray(next.result?.finalData) && next.result.finalData.length === 0
    return empty ? undefined : `the next workspace is not empty: ${shown(next)}`
  }
}

function hostDevShmUnchanged(): Verify {
  const before = new Set(readdirSync('/dev/shm'))
  return () => {
    // Other programs of this machine use it, too: only what the case writes is looked for.
    const added = readdirSync('/dev/shm').filter((name) => !before.has(name) && name.startsWith('sem.research'))
    return added.length === 0 ? undefined : `in the host's /dev/shm: ${added.join(', ')}`
  }
}

function noPrototypePollution(): Verify {
  return () => ('polluted' in {} ? 'Object.prototype was changed' : undefined)
}

function canaryFileUnchanged({ ground: { fixtures } }: Stage): Verify {
  const path = valueOf(fixtures, 'CANARY_FILE')
  const before = readFileSync(path)
  return () => (readFileSync(path).equals(before) ? undefined : 'the canary file was changed')
}

/** Names, sizes and times of what such a script would go for: the fixtures on the host, and the host's own settings. */
function noFileOutsideChanged({ ground: { fixtures } }: Stage): Verify {
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

/** Each run of such a case emits the tag that it was given as `inputs.tag`, and nothing else. */
function resultsNotSwapped({ case: { id } }: Stage): Verify {
  return (answers) => {
    const told = answers.flatMap(({ result }) => (result?.success === true ? [result.finalData] : []))
    const wanted = answers.flatMap(({ result }, index) => (result?.success === true ? ['ab'.charAt(index)] : []))
    return told.join() === wanted.join() && told.length > 0
      ? undefined
      : `${id}: got ${told.join()} for ${wanted.join()}`
  }
}

function noCoreFile({ ground: { engine } }: Stage): Verify {
  return (answers) => {
    const collected = answers.flatMap(({ result }) => result?.files.map(({ path }) => path) ?? [])
    const left = [...collected, ...engine.runDirectories()].filter((path) => /(^|\/)core/.test(path))
    return left.length === 0 ? undefined : `core files: ${left.join(', ')}`
  }
}

function secretNotInOutputs({ options }: Stage): Verify {
  return (answers) => {
    const secrets = Object.values(options.secrets ?? {})
    if (secrets.length === 0) return 'the case has no secret'
    const shownBy = answers.filter((answer) => secrets.some((secret) => everythingOf(answer).includes(secret)))
    return shownBy.length === 0 ? undefined : 'a secret came out'
  }
}

function secretNotInProcessArgs(stage: Stage): Verify {
  return async () =>
    whileASecretIsUsed(stage, () => {
      const files = allProcesses().flatMap(({ pid }) => [`/proc/${pid}/cmdline`, `/proc/${pid}/environ`])
      return files.map((path) => ({ where: path, text: readAll(path) }))
    })
}

/** What a daemon tells of a container: inspection, processes, log, changed files, layers of its image. */
function secretNotInContainers(stage: Stage): Verify {
  const { engine } = stage.ground
  return async () =>
    whileASecretIsUsed(stage, (sandboxId) => {
      const told = engine.toldAbout(sandboxId)
      return told === null ? null : [{ where: 'what the daemon tells of the container', text: told }]
    })
}

const WATCHED_SAMPLES = 5
const WATCHED_MS = 1000

/**
 * The case's own run may be over before anybody can look: a longer one with the same secret is watched, for a second and
 * some samples at least. `look` gives null where there is nothing to look at.
 */
async function whileASecretIsUsed(
  { runner, options }: Stage,
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
  if (answer.result?.status !== 'cancelled') return `the watched run was not running: ${shown(answer)}`
  return seen === undefined ? undefined : `a secret stands in ${seen}`
}

function readAll(path: string): string {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return ''
  }
}

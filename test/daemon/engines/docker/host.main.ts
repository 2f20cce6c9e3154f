/** A separate host process with restricted rights or resources: `host.main.ts '{"act": …}'` prints lines of JSON. */
import { dockerEngine, type DockerEngineOptions } from '../../../../src/engines/docker/index.ts'
import { resolveLimits, sandboxLimits } from '../../../../src/sandbox/index.ts'
import { createSandglass } from '../../../../src/sandglass.ts'
import { FORKING } from '../../../support/scripts.ts'

/** The instructions for the host. */
export interface HostOrder {
  /**
   * `report`: prints the report of the engine. `idle`: leaves a sandbox idle and ends its program. `run`: awaits one run and leaves everything as it
   * is. `runs`: keeps this many endless runs active.
   */
  readonly act: 'report' | 'idle' | 'run' | 'runs'
  readonly engine?: DockerEngineOptions
  /** Switches to this user after its modules are loaded, because that user may be unable to read this repository. */
  readonly uid?: number
  readonly runs?: number
}

const { act, engine: options, uid, runs = 1 } = JSON.parse(process.argv[2] ?? '') as HostOrder
if (uid !== undefined) {
  await import('dockerode')
  process.setgroups?.([])
  process.setgid?.(uid)
  process.setuid?.(uid)
}
const engine = dockerEngine(options)
const say = (value: unknown): void => console.log(JSON.stringify(value))

switch (act) {
  case 'report':
    say(await engine.report())
    await engine.close()
    break
  case 'idle': {
    const { id } = await engine.create({ limits: sandboxLimits(resolveLimits()) })
    say({ id })
    break
  }
  case 'run': {
    const sandglass = await createSandglass({ engine, poolSize: 1 })
    const { finalData, sandbox } = await sandglass.run('import time\ntime.sleep(1)\nemit_result(1)')
    say({ finalData, id: sandbox.id })
    break
  }
  case 'runs': {
    const sandglass = await createSandglass({ engine, poolSize: runs, maxOverflow: 0 })
    const limits = { executionTimeoutSec: 600 }
    const onEvent = ({ type }: { type: string }): void => {
      if (type === 'stdout') say({ forked: true })
    }
    await Promise.all(Array.from({ length: runs }, () => sandglass.run(FORKING, { limits, onEvent })))
  }
}

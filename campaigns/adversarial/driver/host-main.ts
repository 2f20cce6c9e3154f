/* Runs one Sandglass in a host process for the test that started it. Arguments: engine module, engine state. */
import type { Sandglass } from '../../../src/sandglass.ts'
import { SandglassError } from '../../../src/errors/index.ts'
import type { SandboxReport } from '../../../src/sandbox/index.ts'
import { settledMemory } from '../../../test/support/memory.ts'
import { type Answer, answerOf } from './answer.ts'
import type { EngineUnderTest } from './engine.ts'
import type { HostAnswer, HostCall } from './host-calls.ts'

const [, , module = '', state = ''] = process.argv
const { openEngine } = (await import(module)) as { openEngine: (state: string) => EngineUnderTest }
const engine = openEngine(state)
let opened: Sandglass | undefined

process.on('message', (call: HostCall) => void answer(call))
process.on('disconnect', () => process.exit(0))

async function answer(call: HostCall): Promise<void> {
  try {
    reply({ number: call.number, value: await serve(call) })
  } catch (error) {
    const code = error instanceof SandglassError ? error.code : 'not-a-SandglassError'
    reply({ number: call.number, thrown: { code, message: error instanceof Error ? error.message : String(error) } })
  }
}

async function serve(call: HostCall): Promise<Answer | SandboxReport | number | null> {
  if (call.call === 'open') {
    opened = await engine.open(call.options)
    return null
  }
  if (call.call === 'memory') return settledMemory()
  if (opened === undefined) throw new Error('send the call `open` first')
  if (call.call === 'run') return answerOf(opened, call.script, call.options)
  if (call.call === 'report') return opened.report()
  await opened.close()
  return null
}

function reply(answered: HostAnswer): void {
  process.send?.(answered)
}

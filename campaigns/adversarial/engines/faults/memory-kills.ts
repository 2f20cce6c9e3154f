import assert from 'node:assert/strict'
import { answerOf, describeAnswer } from '../../driver/answer.ts'
import type { EngineUnderTest } from '../../driver/engine.ts'

const MiB = 1024 * 1024

/** FLT-007: a kill for memory is reported as `oom`, and a SIGKILL by the script itself as `crash`. */
export async function reportsMemoryKill(engine: EngineUnderTest): Promise<void> {
  await using sandglass = await engine.open({ poolSize: 1, limits: { memoryBytes: 128 * MiB } })
  const bomb = await answerOf(sandglass, 'x = b""\nwhile True:\n    x += bytes(8 << 20)', {})
  assert.equal(bomb.errorKind, 'oom', describeAnswer(bomb))
  const killed = await answerOf(sandglass, 'import os\nos.kill(os.getpid(), 9)', {})
  assert.equal(killed.errorKind, 'crash', describeAnswer(killed))
  const next = await answerOf(sandglass, 'emit_result(1)', {})
  assert.equal(next.result?.finalData, 1, describeAnswer(next))
}

const ONLY_A_CHILD = `import os, signal
pid = os.fork()
if pid == 0:
    x = []
    while True:
        x.append(bytearray(os.urandom(1 << 16) * 64))
_, status = os.waitpid(pid, 0)
emit_result([os.WIFSIGNALED(status), os.WTERMSIG(status) == signal.SIGKILL])`

/** FLT-008: a run succeeds although a child is killed for memory, and the next crash is not reported as `oom`. */
export async function toleratesMemoryKillOfChild(engine: EngineUnderTest): Promise<void> {
  await using sandglass = await engine.open({ poolSize: 1, limits: { memoryBytes: 128 * MiB } })
  for (let round = 0; round < 2; round += 1) {
    const answer = await answerOf(sandglass, ONLY_A_CHILD, {})
    assert.deepEqual([answer.errorKind, answer.result?.finalData], [null, [true, true]], describeAnswer(answer))
    assert.equal(answer.result?.success, true)
    const killed = await answerOf(sandglass, 'import os\nos.kill(os.getpid(), 9)', {})
    assert.equal(killed.errorKind, 'crash', describeAnswer(killed))
  }
}

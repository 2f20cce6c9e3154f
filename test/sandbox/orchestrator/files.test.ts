import { expect, test } from 'vitest'
import { scriptedModel } from '../../../src/testing/index.ts'
import { onLocal } from '../tools/on-engine.ts'

const COPY = `import csv
from pathlib import Path
with open("in/a.csv") as lines: rows = list(csv.reader(lines))
Path("out").mkdir(exist_ok=True)
Path("out/sum.txt").write_text(str(sum(int(row[1]) for row in rows)))
emit_result("done")`

const textOf = ({ path, content }: { path: string; content: Uint8Array }): [string, string] => [
  path,
  Buffer.from(content).toString(),
]

await onLocal((at) => {
  test('scripts of a task find the files of the task, and leave files for its caller', async () => {
    const model = scriptedModel('emit_result(open("in/b.csv").read())', COPY)
    const done = await at.sg.solve('Add', { model, files: { 'in/a.csv': 'x,1\ny,2' }, collect: ['out/**'] })
    expect([done.finalData, done.files.map(textOf)]).toEqual(['done', [['out/sum.txt', '3']]])
    expect(done.record.attempts.map(({ status, files }) => [status, files])).toEqual([
      ['failed', []],
      ['completed', done.files.map(({ path, size, sha256 }) => ({ path, size, sha256 }))],
    ])
    expect(done.toAgentContext()).toContain('<files>\n"out/sum.txt" (1 bytes)\n</files>')
    const [first = '', second = ''] = model.prompts
    expect(first).toContain('Files in the working directory: "in/a.csv".')
    expect(first).toContain('Write files for the user to paths that match "out/**".')
    expect(second).toContain('Hint: there is no such file or directory. Files in the working directory: "in/a.csv".')
  }, 60_000)

  test('a stream says of each file that it has come, before its script ends', async () => {
    const model = scriptedModel(COPY)
    const seen: unknown[] = []
    const options = { model, files: { 'in/a.csv': 'x,1' }, collect: ['out/**'] }
    for await (const each of at.sg.solveStream('Add', options))
      seen.push(each.type === 'event' ? each.event.type : each.type === 'file' ? each : each.result.files.map(textOf))
    expect(seen.slice(seen.indexOf('sandbox_assigned'))).toEqual([
      'sandbox_assigned',
      { type: 'file', path: 'out/sum.txt', size: 1 },
      'script_executed',
      'attempt_ended',
      'run_ended',
      [['out/sum.txt', '1']],
    ])
  }, 60_000)

  test('the policy strict says that there are no files where a task has none', async () => {
    const model = scriptedModel('emit_result(open("a").read())', 'emit_result(1)')
    const done = await at.sg.solve('One', { model })
    expect([done.finalData, done.files]).toEqual([1, []])
    expect(model.prompts[0]).not.toContain('Files')
    expect(model.prompts[1]).toContain('There are no files here')
  }, 60_000)

  test('steps leave the newest file of each path', async () => {
    const model = scriptedModel(
      'open("a.txt", "w").write("1"); open("b.txt", "w").write("1"); emit_intermediate("n", 1)',
      'open("a.txt", "w").write("2"); raise ValueError',
      'open("b.txt", "w").write("3"); emit_result(3)',
    )
    const done = await at.sg.solve('Steps', { model, mode: 'interactive', collect: ['*.txt'] })
    expect([done.finalData, done.files.map(textOf)]).toEqual([
      3,
      [
        ['a.txt', '1'],
        ['b.txt', '3'],
      ],
    ])
  }, 60_000)

  test('the record has no digest of a file that holds a secret', async () => {
    const model = scriptedModel('import os\nopen("k.txt", "w").write(os.environ["PIN"]); emit_result(1)')
    const done = await at.sg.solve('Pin', { model, policy: 'off', secrets: { PIN: '4711-0815' }, collect: ['*.txt'] })
    expect(done.record.attempts.map(({ files }) => files)).toEqual([[{ path: 'k.txt', size: 9, sha256: null }]])
  }, 60_000)

  test('in a workspace, files stay from script to script', async () => {
    await using ws = await at.sg.workspace()
    const model = scriptedModel(
      'open("n.txt", "a").write("2"); emit_intermediate("n", 1)',
      'open("n.txt", "a").write("3"); raise ValueError',
      'emit_result(open("n.txt").read())',
    )
    const options = { model, workspace: ws, files: { 'n.txt': '1' }, collect: ['*.txt'] } as const
    const done = await at.sg.solve('Count', { ...options, mode: 'interactive' })
    expect([done.finalData, done.files.map(textOf)]).toEqual(['123', [['n.txt', '123']]])
    expect(model.prompts[0]).toContain('stay from script to script')
    expect(Buffer.from(await ws.get('n.txt')).toString()).toBe('123')
    const plain = scriptedModel('emit_result(open("n.txt").read())')
    expect((await at.sg.solve('Read', { model: plain, workspace: ws })).finalData).toBe('123')
    await expect(at.sg.solve('x', { ...options, dependencies: ['a'] })).rejects.toThrow('dependencies: a run in a')
    await expect(at.sg.solve('x', { ...options, files: { '../n': '' } })).rejects.toThrow('../n')
    await ws.close()
    await expect(at.sg.solve('x', options)).rejects.toThrow('closed')
  }, 60_000)
})

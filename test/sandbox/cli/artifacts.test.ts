import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { type CommandResult, lastLine, linesOf, makeCli } from '../../support/cli/sandglass.ts'

const cli = makeCli()
afterAll(() => cli[Symbol.dispose]())

let stores = 0
type Artifacts = (words: string, input?: string) => Promise<CommandResult>

/** The command with a store of its own. */
function openStore(): Artifacts {
  const env = { SANDGLASS_STORE_DIR: join(cli.directory, `store-${stores++}`) }
  return (words, input = '') => cli.run(['artifacts', ...words.split(' ')], { input, env })
}

test('files are put, listed, read and removed', async () => {
  const artifacts = openStore()
  const file = cli.file('report.csv', 'a,b\n1,2\n')
  const first = {
    v: 1,
    type: 'artifact',
    name: 'report.csv',
    version: 0,
    mime_type: 'text/csv',
    size: 8,
    sha256: createHash('sha256').update('a,b\n1,2\n').digest('hex'),
  }
  expect(linesOf(await artifacts(`put ${file} --json`))).toEqual([first])
  expect(lastLine(await artifacts('put - report.csv --json', 'new'))).toMatchObject({ version: 1, size: 3 })
  const [text, old, listed, versions] = await Promise.all([
    artifacts('get report.csv'),
    artifacts('get report.csv@0'),
    artifacts('list --json'),
    artifacts('list report.csv --json'),
  ])
  expect(text).toEqual({ code: 0, stdout: 'new', stderr: '' })
  expect(old.stdout).toBe('a,b\n1,2\n')
  expect(linesOf(listed)).toMatchObject([{ name: 'report.csv', version: 1 }])
  expect(linesOf(versions)).toMatchObject([first, { version: 1 }])
  expect(linesOf(await artifacts('rm report.csv@1 --json'))).toMatchObject([{ version: 1 }])
  expect((await artifacts('get report.csv')).stdout).toBe('a,b\n1,2\n')
  expect((await artifacts('rm report.csv')).stdout).toContain('report.csv@0')
  expect((await artifacts('list')).stdout).toBe('no artifacts in this session\n')
})

test('a directory that is no store is refused, not empty', async () => {
  const listed = await cli.run(['artifacts', 'list', '--store', '/etc'])
  expect(listed).toMatchObject({ code: 8, stdout: '' })
  expect(listed.stderr).toContain('/etc')
})

test('sessions are apart', async () => {
  const artifacts = openStore()
  await artifacts('put - a.txt --session one', 'of one')
  const [one, two, none] = await Promise.all([
    artifacts('get a.txt --session one'),
    artifacts('get a.txt --session two'),
    artifacts('list --json'),
  ])
  expect(one.stdout).toBe('of one')
  expect(two).toMatchObject({ code: 2, stdout: '' })
  expect(linesOf(none)).toEqual([])
})

test('get --save writes a file, and replaces one only with --overwrite', async () => {
  const artifacts = openStore()
  await artifacts('put - a.bin', 'one')
  const target = join(cli.directory, 'saved.bin')
  const saved = await artifacts(`get a.bin --save ${target} --json`)
  expect(lastLine(saved)).toMatchObject({ type: 'artifact', version: 0 })
  expect(readFileSync(target, 'utf8')).toBe('one')
  await artifacts('put - a.bin', 'two')
  const refused = await artifacts(`get a.bin --save ${target}`)
  expect(refused).toMatchObject({ code: 2 })
  expect(refused.stderr).toContain('it exists')
  expect(readFileSync(target, 'utf8')).toBe('one')
  expect(await artifacts(`get a.bin --save ${target} --overwrite`)).toMatchObject({ code: 0 })
  expect(readFileSync(target, 'utf8')).toBe('two')
})

test('what is wrong is named, and exits with 2', async () => {
  const artifacts = openStore()
  mkdirSync(join(cli.directory, 'folder'))
  const cases: readonly (readonly [words: string, message: string])[] = [
    ['', 'artifacts has no ""'],
    ['lst', 'artifacts has no "lst"'],
    ['list a b', 'takes at most one NAME'],
    ['get', 'takes one NAME'],
    ['get missing', 'this session has no artifact "missing"'],
    ['rm missing', 'this session has no artifact "missing"'],
    ['list missing', 'this session has no artifact "missing"'],
    ['get @1', 'the name is empty'],
    ['get ../a', 'artifact name "../a"'],
    [`put ${join(cli.directory, 'nothing')}`, 'nothing'],
    [`put ${join(cli.directory, 'folder')}`, 'folder'],
    ['put -', 'needs a NAME'],
    ['put - a@1', 'ends like a version'],
    ['list --save x', 'artifacts get has it'],
    ['get a --overwrite', '--overwrite needs --save'],
    ['list --sesion x', 'Did you mean "--session"?'],
  ]
  const ended = await Promise.all(cases.map(([words]) => artifacts(words, 'x')))
  for (const [at, [words, message]] of cases.entries()) {
    expect({ words, ...ended[at] }).toEqual({
      words,
      code: 2,
      stdout: '',
      stderr: expect.stringContaining(message) as string,
    })
  }
  expect(lastLine(await artifacts('get missing --json'))).toMatchObject({ type: 'error', code: 'artifact_not_found' })
})

test('content of a script does not reach a terminal', async () => {
  const store = join(cli.directory, 'terminal')
  await cli.run(['artifacts', 'put', '-', 'a', '--store', store], { input: '\u001B]0;title\u0007' })
  const ended = await cli.run(['artifacts', 'get', 'a', '--store', store], {
    wrapper: ['python3', '-c', 'import pty, sys; sys.exit(pty.spawn(sys.argv[1:]) >> 8)'],
  })
  expect(ended).toMatchObject({ code: 2, stdout: expect.stringContaining('--save FILE') as string })
  expect(ended.stdout).not.toContain('\u001B]0')
})

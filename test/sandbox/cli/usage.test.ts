import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { ERROR_CODES, SandglassError } from '../../../src/errors/index.ts'
import { failureOf, UsageError } from '../../../src/cli/failure.ts'
import { parseArgs } from '../../../src/cli/args.ts'
import { exitCodeOf } from '../../../src/cli/exit-codes.ts'
import { type CommandName, FLAGS, unknownFlag } from '../../../src/cli/flags.ts'
import { parseSandboxFlags } from '../../../src/cli/options.ts'
import { parseSize } from '../../../src/cli/sizes.ts'
import packageJson from '../../../package.json' with { type: 'json' }
import { lastLine, makeCli } from '../../support/cli/sandglass.ts'

const cli = makeCli()
afterAll(() => cli[Symbol.dispose]())

const REPOSITORY = join(cli.directory, 'repository')
for (const name of ['objects', 'refs', 'HEAD']) mkdirSync(join(REPOSITORY, '.git', name), { recursive: true })
const SCRIPT = cli.file('script.py', 'emit_result(1)\n')
// Node itself names no line for wrong JavaScript that is imported.
const BROKEN = cli.file('broken.mjs', 'export const a = 1\nexport const b = ;\n')
const TYPED = cli.file('typed.ts', 'const b: = 2\n')
const IMPORTS = cli.file('imports.ts', 'import "./typed.ts"\n')

describe('wrong usage exits with 2 and shows the correct form', () => {
  test.concurrent.each<[string[], string]>([
    [['rnu'], 'no command "rnu". Did you mean "run"? See sandglass --help'],
    [['run'], 'run needs a FILE, - for stdin, or -c CODE; see sandglass run --help'],
    [['run', SCRIPT, '--tiemout', '1'], 'no flag --tiemout. Did you mean "--timeout"?'],
    [['run', SCRIPT, '--concurrency', '4'], 'run has no flag --concurrency; batch has it. See sandglass run --help'],
    [['--cpus', '1', 'run'], 'no flag "--cpus" before the command; write it after: sandglass COMMAND --cpus'],
    [
      ['run', SCRIPT, '--secret', 'SANDGLASS_NOT_SET'],
      '--secret SANDGLASS_NOT_SET: no such environment variable is set',
    ],
    [['run', SCRIPT, '--input', 'x=abc'], `--input x: "abc" is not JSON; write a text as --input 'x="…"'`],
    [
      ['run', SCRIPT, '--input', 'x=[1234567890123456789012]'],
      '--input x: 1234567890123456789012 is an integer beyond 2^53',
    ],
    [['run', SCRIPT, '--file', '/nonexistent/a:b'], 'cannot read --file /nonexistent/a: ENOENT'],
    [['run', '-', '--file=-:a'], 'stdin is used twice: only one of the script, --file and --stdin can be -'],
    [
      ['run', SCRIPT, '--file=-:a', '--file=-:b'],
      'stdin is used twice: only one of the script, --file and --stdin can be -',
    ],
    [['run', SCRIPT, '-c', '1'], `run takes -c CODE or a FILE, but also got "${SCRIPT}"`],
    [['run', '-c', '1', '-c', '2'], 'run takes one -c CODE'],
    [['run', '-c'], '-c needs a value: -c CODE'],
    [
      ['run', SCRIPT, '--engine', 'docker', '--image', 'BAD NAME'],
      '--image: must be the name of an image, like python:3.12-slim, not "BAD NAME"',
    ],
    [['batch', '--engine', 'docker', '--image', '../x'], '--image: must be the name of an image'],
    [['run', SCRIPT, '--tools', BROKEN], `--tools ${BROKEN}: it cannot be loaded: line 2: Unexpected token ';'`],
    [
      ['run', SCRIPT, '--tools', IMPORTS],
      `--tools ${IMPORTS}: it cannot be loaded: ${TYPED}, line 1: Unexpected token`,
    ],
    [['run', SCRIPT, '--overwrite'], '--overwrite needs --save DIR'],
    [['run', SCRIPT, '--save', REPOSITORY, '--collect', 'a'], `--save ${REPOSITORY}: it is the root of a repository`],
    [
      ['run', SCRIPT, '--save', join(REPOSITORY, '.git'), '--collect', 'a'],
      `--save ${REPOSITORY}/.git: it is the root of a repository`,
    ],
    [
      ['run', SCRIPT, '--save', '/proc/1/foo/bar', '--collect', 'a'],
      '--save /proc/1/foo/bar: /proc/1/foo cannot be created: ENOENT',
    ],
    [['run', cli.directory], `cannot read ${cli.directory}: it is a directory`],
    [['batch', '--out', '/nonexistent/out'], '--out /nonexistent/out: ENOENT'],
    [['check'], 'check needs a FILE, or - for stdin; see sandglass check --help'],
    [['check', SCRIPT, 'b.py'], 'check takes one FILE, but also got "b.py"'],
    [['check', SCRIPT, '--policy', 'off'], '--policy off checks nothing; use standard or strict'],
    [
      ['check', SCRIPT, '--timeout', '1'],
      'check has no flag --timeout; run, exec, repl, batch, solve and agent have it',
    ],
    [['run', SCRIPT, '--tools', '/nonexistent/tools.ts'], '--tools /nonexistent/tools.ts: there is no such file\n'],
    [['run', SCRIPT, '--tools', cli.directory], `--tools ${cli.directory}: it is a directory`],
    [['run', SCRIPT, '--input', 'class=1'], '--input class: "class" is a keyword of Python'],
    [['run', SCRIPT, '--input', '__x=1'], '--input __x: "__x" is refused: names that start with "__"'],
    [['check', SCRIPT, '--input', 'emit_log'], '--input emit_log: "emit_log" is a function of every script'],
  ])('sandglass %s', async (args, message) => {
    const { code, stdout, stderr } = await cli.run(args)
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toContain(`sandglass: ${message}`)
  })

  test.each<[string[], string]>([
    [['--timeout'], '--timeout needs a value: --timeout S'],
    [['--timeout', '--json'], '--timeout needs a value: --timeout S'],
    [['--timeout=0'], '--timeout: 0 is not a number of seconds from 0.001 to 86400'],
    [['--timeout', 'soon'], '--timeout: "soon" is not a number'],
    [['--timeout', '1e999'], '--timeout: "1e999" is not a number'],
    [['--max-tool-wait=-1'], '--max-tool-wait: -1 is not a number of seconds from 0 to 86400'],
    [['--json=yes'], '--json takes no value'],
    [['--memory', 'lots'], '--memory: "lots" is not a size; write bytes, 512m, 1g or 256MiB'],
    [['--memory', '79m'], '--memory: 79m is too little; the least is 80m: write --memory 80m or more'],
    [['--memory', '1000001'], '--memory: 1000001 is too little; the least is 80m: write --memory 80m or more'],
    [['--memory', '1.5t'], '--memory: 1536g is too much; the most is 1t: write --memory 1t or less'],
    [['--max-output', '0'], '--max-output: 0 is too little; the least is 1: write --max-output 1 or more'],
    [['--mode', 'plann'], '--mode: unknown mode "plann". Did you mean "plan"? Choose one of: plan, interactive'],
    [
      ['--require', 'disk,memroy'],
      '--require: unknown requirement "memroy". Did you mean "memory"? Choose one of: memory, pids',
    ],
    [['--policy', 'stritc'], '--policy: unknown policy "stritc". Did you mean "strict"?'],
    [['--engine', 'lokal'], '--engine: unknown engine "lokal". Did you mean "local"?'],
  ])('the flags %s', (args, message) => {
    expect(() => parseSandboxFlags(parseArgs(args, FLAGS.run))).toThrow(message)
  })

  test.each<[CommandName, string, string]>([
    ['run', '--out', 'run has no flag --out; batch and show have it. See sandglass run --help'],
    ['batch', '--save', 'batch has no flag --save; run, repl, solve and artifacts have it. See sandglass batch --help'],
    [
      'doctor',
      '--timeout',
      'doctor has no flag --timeout; run, exec, repl, batch, solve and agent have it. See sandglass doctor --help',
    ],
    ['run', '--tiemout', 'no flag --tiemout. Did you mean "--timeout"?'],
    ['run', '-timeout', 'no flag -timeout. Did you mean "--timeout"?'],
    ['run', '--concurency', 'no flag --concurency. Did you mean "--concurrency" of batch?'],
    [
      'runs',
      '--engin',
      'no flag --engin. Did you mean "--engine" of run, exec, shell, repl, batch, check, solve, agent, env, doctor, ps and prune?',
    ],
    ['ps', '--engin', 'no flag --engin. Did you mean "--engine"?'],
    ['run', '-x', 'no flag -x. See sandglass run --help'],
  ])('%s %s: the message names the commands with this flag', (command, flag, message) => {
    const hint = (name: string): string => unknownFlag(name, command)
    expect(() => parseArgs([`${flag}=1`], FLAGS[command], hint)).toThrow(new UsageError('invalid_request', message))
  })

  test('sizes have units of 1024', () => {
    const sizes = ['268435456', '512m', '1g', '256MiB', '1.5K', '3b'].map((text) => parseSize('--memory', text))
    expect(sizes).toEqual([268_435_456, 536_870_912, 1_073_741_824, 268_435_456, 1536, 3])
  })
})

test('with --json an error is a line on stdout, too', async () => {
  const ended = await cli.run(['run', SCRIPT, '--json', '--pids', '1'])
  expect(lastLine(ended)).toEqual({
    v: 1,
    type: 'error',
    status: 'invalid-request',
    success: false,
    error_kind: 'invalid_request',
    code: 'invalid_request',
    error: '--pids: 1 is not a whole number of processes from 8 to 32768',
  })
  expect(ended.code).toBe(2)
  expect(ended.stderr).toBe('sandglass: --pids: 1 is not a whole number of processes from 8 to 32768\n')
})

test('batch reports its own errors on stderr, and with --json as a line, too', async () => {
  const [plain, asJson] = await Promise.all([
    cli.run(['batch', '--pids', '1']),
    cli.run(['batch', '--json', '--pids', '1']),
  ])
  const stderr = 'sandglass: --pids: 1 is not a whole number of processes from 8 to 32768\n'
  expect(plain).toEqual({ code: 2, stdout: '', stderr })
  expect([asJson.code, asJson.stderr, lastLine(asJson).status]).toEqual([2, stderr, 'invalid-request'])
})

test.concurrent('no command makes images', async () => {
  const { code, stderr } = await cli.run(['image', 'build'])
  expect([code, stderr]).toEqual([2, 'sandglass: no command "image". See sandglass --help\n'])
})

test.concurrent('an image without the engine docker is a mistake', async () => {
  const { code, stderr } = await cli.run(['run', SCRIPT, '--image', 'python:3'])
  expect([code, stderr]).toEqual([
    2,
    'sandglass: --image belongs to the engine docker or kubernetes: add --engine docker or --engine kubernetes\n',
  ])
})

test.concurrent('--engine pyodide runs a script with Node alone, and warns once', async () => {
  const ended = await cli.run(['run', SCRIPT, '--json', '--engine', 'pyodide'], { env: { PATH: '/nonexistent' } })
  expect({ code: ended.code, ...lastLine(ended) }).toMatchObject({
    code: 0,
    success: true,
    sandbox: { engine: 'pyodide', level: 'language-only', network: 'language-only' },
  })
  expect(ended.stderr.match(/SandglassWarning/g)).toEqual(['SandglassWarning'])
})

test.concurrent.each(['run', 'batch'])('without bubblewrap %s --engine local exits with 8', async (command) => {
  const file = command === 'run' ? [SCRIPT] : []
  const { code, stdout } = await cli.run([command, ...file, '--json', '--engine', 'local'], {
    env: { PATH: '/nonexistent' },
  })
  expect(code).toBe(8)
  expect(stdout).toContain('bubblewrap_missing')
})

test.concurrent('without bubblewrap and Docker doctor reports that, and that auto chooses pyodide', async () => {
  const { code, stdout } = await cli.run(['doctor', '--json'], {
    env: { PATH: '/nonexistent', DOCKER_HOST: 'unix:///nonexistent/docker.sock' },
  })
  expect([code, JSON.parse(stdout)]).toMatchObject([0, { auto: 'pyodide' }])
  expect(stdout).toContain('bubblewrap_missing')
  expect(stdout).toContain('docker_unreachable')
})

test.concurrent('doctor of one engine says nothing of the others', async () => {
  const env = { DOCKER_HOST: 'unix:///nonexistent/docker.sock' }
  const [text, json] = await Promise.all([
    cli.run(['doctor', '--engine', 'docker'], { env }),
    cli.run(['doctor', '--engine', 'docker', '--json'], { env }),
  ])
  expect([text.code, text.stdout.split('\n').at(-2)]).toEqual([8, 'The engine docker is not usable here.'])
  expect([json.code, JSON.parse(json.stdout)]).toMatchObject([
    8,
    { auto: null, engines: [{ name: 'docker', usable: false }] },
  ])
})

test.concurrent('auto refuses when no engine meets a requirement, with the reason of each', async () => {
  const ended = await cli.run(['run', SCRIPT, '--json', '--require', 'network'], {
    env: { PATH: '/nonexistent', DOCKER_HOST: 'unix:///nonexistent/docker.sock' },
  })
  expect(ended.code).toBe(8)
  expect(lastLine(ended)).toMatchObject({ code: 'engine_unavailable' })
  expect(lastLine(ended).error).toMatch(/^no engine works on this machine:\nlocal: .*\ndocker: .*\npyodide: .*$/)
  expect(ended.stderr).toMatch(
    /^sandglass: no engine works on this machine:\n {4}local: .*\n {4}docker: .*\n {4}pyodide: .*\n$/,
  )
})

test('help and version go to stdout; no command at all is wrong usage', async () => {
  const [general, command, same, version, nothing] = await Promise.all([
    cli.run(['--help']),
    cli.run(['help', 'batch']),
    cli.run(['batch', '--help', '--nonsense']),
    cli.run(['--version']),
    cli.run([]),
  ])
  expect([general.code, command.code, same.code, version.code, nothing.code]).toEqual([0, 0, 0, 0, 2])
  expect(general.stdout.startsWith(`${packageJson.description}\n\nUsage: sandglass COMMAND`)).toBe(true)
  expect(command.stdout).toContain('Usage: sandglass batch')
  expect(same.stdout).toBe(command.stdout)
  expect(version.stdout).toMatch(/^\d+\.\d+\.\d+\n$/)
  expect(nothing).toEqual({ code: 2, stdout: '', stderr: general.stdout })
})

test('with --json stdout carries JSON only: help goes to stderr, the version is an object', async () => {
  const [plain, help, general, events, version] = await Promise.all([
    cli.run(['run', '--help']),
    cli.run(['run', '--json', '-h']),
    cli.run(['--help', '--json']),
    cli.run(['help', 'run', '--events']),
    cli.run(['--version', '--json']),
  ])
  expect(help).toEqual({ code: 0, stdout: '', stderr: plain.stdout })
  expect([general.stdout, events]).toEqual(['', help])
  expect(JSON.parse(version.stdout)).toEqual({ v: 1, version: expect.stringMatching(/^\d+\.\d+\.\d+$/) as string })
})

test('each kind of outcome has its exit code', () => {
  const kinds = [
    null,
    'error',
    'crash',
    'invalid_request',
    'validation',
    'timeout',
    'oom',
    'output_limit',
    'infrastructure',
    'cancelled',
    'internal',
  ] as const
  expect(kinds.map(exitCodeOf)).toEqual([0, 1, 1, 2, 3, 4, 5, 6, 7, 130, 70])
})

test('each error code has its exit code, and a defect has 70', () => {
  const codes = Object.keys(ERROR_CODES) as (keyof typeof ERROR_CODES)[]
  const byCode = Object.fromEntries(codes.map((code) => [code, failureOf(new SandglassError(code, '')).exitCode]))
  expect(byCode).toMatchObject({
    invalid_request: 2,
    limits_do_not_fit: 2,
    engine_unknown: 2,
    packages_unreadable: 2,
    engine_unavailable: 8,
    requirement_unmet: 8,
    limit_not_enforceable: 8,
    feature_unavailable: 8,
    bubblewrap_missing: 8,
    userns_forbidden: 8,
    python_missing: 8,
    state_dir_unusable: 8,
    no_space: 7,
    pool_exhausted: 7,
    harness_start_failed: 7,
    workspace_owned: 9,
    aborted: 130,
    pool_closed: 70,
  })
  expect(Object.values(byCode).every((code) => [2, 7, 8, 9, 70, 130].includes(code))).toBe(true)
  expect(failureOf(new TypeError('x'))).toEqual({
    status: 'failed',
    errorKind: 'internal',
    code: null,
    message: 'x',
    exitCode: 70,
  })
})

import { ENGINES, type EngineTable } from '../engines/index.ts'
import type { CommandName } from './flags.ts'

/** `sandglass --help`. */
export const GENERAL_HELP = `Run Python that a language model wrote: in a sandbox, under limits, with a typed, explained result.

Usage: sandglass COMMAND [FLAGS]

  run        run one script
  exec       run a program
  shell      open a terminal in a sandbox
  repl       run cells of Python whose variables stay, also after a crash
  batch      run many: one JSON request a line in, one answer a line out
  check      find mistakes in a script without running it
  solve      let a model solve a task by writing Python
  agent      let a model work by scripts, and decide about each before it runs
  env        list, add, update, remove and verify installed packages
  artifacts  list, get, put and remove results that are kept by name and version
  workspaces list, show and remove workspaces that were kept
  runs       list the tasks of the journal
  show       show one of them in full: scripts, tool calls, errors
  doctor     show which engines work on this machine, and the remedy for the others
  ps         list every resource of Sandglass, in use or orphaned
  prune      remove orphans

  sandglass COMMAND --help   flags of a command
  sandglass --version

Example:
  sandglass run -c 'emit_result(6 * 7)'

Exit codes of run: 0 done, 1 the script failed, 2 wrong usage, 3 rejected, 4 timeout, 5 memory, 6 output,
7 sandbox lost, 8 engine or requirement missing, 70 defect of Sandglass, 130 cancelled. Of solve and agent: 0 an answer,
1 none, 7 the model or the machinery failed, and 2, 8, 70, 130 as above. Of exec: the program's own, 124 timeout,
127 no such program. More in docs/cli.md.
`

/** Stands in a text for the flags of the engines. */
const ENGINE_FLAGS = '%engine flags%\n'
const FLAG_WIDTH = 26

const LIMITS_HELP = `Limits:
  --timeout S               wall clock in seconds, default 30
  --max-tool-wait S         time by which calls of --tools may move that end, default 300
  --memory SIZE             at least 80m, default 512m; sizes are bytes or 512m, 1g, 256MiB
  --cpus N                  CPU time per wall time, default 1
  --pids N                  processes and threads, default 128
  --max-output SIZE         all that a script sends, default 1m
`

const SANDBOX_HELP = `Sandbox:
${ENGINE_FLAGS}  --require ITEM,…          refuse to start unless these are in force: memory, pids, cpu, disk, output, wall,
                            network, system-call-filter, uid-per-sandbox, or at least a level such as os-sandbox
  --tools-dir DIR           Python files whose functions every script can call

${LIMITS_HELP}`

const MODEL_HELP = `Model:
  --model MODEL             a name at an OpenAI-compatible address (key: OPENAI_API_KEY), replay:FILE, or a JS or TS module
                            that exports a model
  --model-url URL           that address, default OPENAI_BASE_URL or https://api.openai.com/v1
  --record FILE             append each prompt and answer to FILE, for replay:FILE
`
const TOOLS_HELP = `  --tools FILE              a JS or TS module that exports tools for the scripts
  --with PKG                a package that scripts can import, as pip names it: "pandas>=2"; repeat for more
`

const FILES_HELP = `Files:
  --file HOST[:PATH]        copy a file into the workspace, under PATH or its own name; repeat for more
  --collect GLOB            bring back files that match, such as 'out/**'; names that begin with a dot only where GLOB
                            writes the dot; repeat for more
  --save DIR                write collected files and shown pictures below DIR; nothing that is there is replaced
  --overwrite               replace what is there, and allow a DIR that is the root of a repository
`

const PROGRAM_SANDBOX_HELP = `Sandbox:
${ENGINE_FLAGS}  --require ITEM,…          refuse to start unless these are in force, see sandglass run --help
  --memory SIZE             at least 80m, default 512m; sizes are bytes or 512m, 1g, 256MiB
  --cpus N                  CPU time per wall time, default 1
  --pids N                  processes and threads, default 128
`

/** `sandglass COMMAND --help`. */
export function commandHelp(command: CommandName, engines: EngineTable = ENGINES): string {
  return COMMAND_HELP[command].replace(ENGINE_FLAGS, engineFlags(engines))
}

function engineFlags(engines: EngineTable): string {
  const names = Object.keys(engines)
  const flags = Object.entries(engines).flatMap(([name, row]) =>
    Object.entries(row.flags).map(([flag, { value, help }]) =>
      line(`${flag} ${value}`, `${help}; with --engine ${name}`),
    ),
  )
  const listed = `${['auto', ...names.slice(0, -1)].join(', ')} or ${names.at(-1)}`
  return [line('--engine NAME', `${listed}; auto takes the first that works here`), ...flags].join('')
}

function line(flag: string, text: string): string {
  return `  ${flag.padEnd(FLAG_WIDTH)}${text}\n`
}

const COMMAND_HELP: Readonly<Record<CommandName, string>> = {
  run: `Run one script in a sandbox of its own.

Usage: sandglass run (FILE | - | -c CODE) [FLAGS]

Script:
  -c CODE                   the script itself, as with python3 -c
  --mode interactive|plan   interactive (default): ending without emit_result is fine; plan needs a result
  --input NAME=JSON         a global of the script, by value; repeat for more
  --stdin FILE              what the script reads from its standard input; - for that of this command
  --secret NAME             an environment variable of yours for the script, hidden in all output; repeat for more
  --policy POLICY           look for mistakes first, and run nothing that has some: standard finds wrong syntax, names
                            and tool calls; strict also refuses what reaches beyond plain computing; default off
  --tools FILE              a JS or TS module that exports tools: functions of the host, and Python tools, for the script
  --skill DIR               show the skill in DIR (with a SKILL.md) at /inputs/skills/NAME, read-only; on local alone; repeat
  --workspace ID            run it in the workspace ID, whose files are kept; see sandglass workspaces
  --store DIR               of --workspace: the store of its files; default that of sandglass workspaces
  --with PKG                a package that the script can import, as pip names it: "pandas>=2"; repeat for more
                            what FILE itself declares (# /// script) counts as well, if it is well known

${FILES_HELP}
Output:
  --json                    one JSON line with everything, nothing else on stdout
  --events                  JSON lines while it runs, then that line

${SANDBOX_HELP}
Example:
  sandglass run report.py --file sales.csv --input year=2024 --collect 'out/*' --save results --timeout 10
`,
  exec: `Run a program in a new workspace, which ends with it, or in one whose files are kept. stdin, stdout, stderr and exit
code are the program's.

Usage: sandglass exec --new|ID [FLAGS] -- PROGRAM [ARGS]

  --store DIR               of ID: the store of its files; default that of sandglass workspaces
  --timeout S               wall clock in seconds, default 30; then everything is killed, exit code 124
  --env NAME=VALUE          a variable of the program, which gets none of yours; repeat for more
  --secret NAME             an environment variable of yours for the program, hidden in all output; repeat for more
  --cwd DIR                 directory to start in, relative to the workspace
  --file HOST[:PATH]        copy a file into the workspace, under PATH or its own name; repeat for more
  --with PKG                a package that its Python can import; repeat for more
  --tty                     run it in a terminal
  --json                    one JSON line: exit_code, signal, timed_out, stdout, stderr, …

${PROGRAM_SANDBOX_HELP}
Example:
  sandglass exec --new --file big.csv -- wc -l big.csv
`,
  shell: `Open a terminal in a new workspace, which ends with it, or in one whose files are kept.

Usage: sandglass shell [ID] [FLAGS]

  --store DIR               of ID: the store of its files; default that of sandglass workspaces
  --env NAME=VALUE          a variable of the shell, which gets none of yours but TERM; repeat for more
  --secret NAME             an environment variable of yours for the shell; repeat for more
  --cwd DIR                 directory to start in, relative to the workspace
  --file HOST[:PATH]        copy a file into the workspace, under PATH or its own name; repeat for more
  --with PKG                a package that its Python can import; repeat for more

${PROGRAM_SANDBOX_HELP}
Example:
  sandglass shell --file sales.csv
`,
  repl: `Run cells of one session: Python that keeps its variables, also when a cell crashes or reaches a limit.

Usage: sandglass repl [FLAGS]

  --json                    one request a line in, one answer a line out (docs/cli.md)
  --timeout S               wall clock of a cell in seconds, default 30
  --tools FILE              a JS or TS module that exports tools for the cells
  --with PKG                a package that cells can import, as pip names it: "pandas>=2"; repeat for more
  --workspace ID            in the workspace ID, whose files are kept; see sandglass workspaces
  --store DIR               of --workspace: the store of its files; default that of sandglass workspaces
  --save DIR                write shown pictures below DIR, as cell-3-display-1.png; nothing that is there is replaced
  --overwrite               replace what is there, and allow a DIR that is the root of a repository

${PROGRAM_SANDBOX_HELP}
Example:
  sandglass repl --with pandas
`,
  batch: `Run many scripts in a pool of warm sandboxes. Reads one JSON request a line from FILE or stdin and writes one
JSON answer a request, in order of completion.

Usage: sandglass batch [FILE | -] [FLAGS]

Request: {"id":"a","script":"emit_result(x + 1)","inputs":{"x":1}}
  and, as wanted: mode, timeout_s, limits, execution_id, secrets, required_secrets, inputs, files, collect, dependencies, after,
  same_sandbox_as (docs/cli.md)

Batch:
  --out FILE                append answers to FILE; requests that it already answers are skipped
  --concurrency N           requests at a time, default the pool size
  --pool-size N             warm sandboxes for each set of limits, default the concurrency, or the CPUs; at least 2
  --policy POLICY           off, standard or strict, for requests that name none
  --tools FILE              a JS or TS module that exports tools, for all requests
  --with PKG                a package that scripts can import, as pip names it: "pandas>=2"; repeat for more
  --max-uses N              scripts after which a sandbox is replaced, default 1000
  --mode interactive|plan   for requests that name none
  --json                    errors of the batch itself as a line, too; answers always are JSON

${SANDBOX_HELP}
Example:
  sandglass batch requests.jsonl --out answers.jsonl --concurrency 4
`,
  check: `Find mistakes in a script without executing any of it. Exit code 0 when there are none, else 3.

Usage: sandglass check (FILE | -) [FLAGS]

  --policy standard|strict  standard (default): syntax, names, imports, tool calls; strict: also what scripts may use
  --tools FILE              a JS or TS module that exports tools, so that calls of them are checked
  --tools-dir DIR           Python files whose functions the script can call
  --mode interactive|plan   in plan a script without emit_result is wrong
  --with PKG                a package that the script can import, as pip names it: "pandas>=2"; repeat for more
  --input NAME              a global that the script will have; repeat for more
  --json                    one JSON line: {"ok":false,"violations":[…]}

Engine whose Python checks:
${ENGINE_FLAGS}
Example:
  sandglass check report.py --tools ./tools.ts --mode plan
`,
  solve: `Let a model solve a task. It writes Python against your tools, the script is checked and run in a sandbox, and the
model gets its errors for the next attempt. The answer goes to stdout, the events into a journal.

Usage: sandglass solve ("TASK" | -) --model MODEL [FLAGS]

${MODEL_HELP}
Task:
${TOOLS_HELP}  --input NAME=JSON         a global of every script, by value; repeat for more
  --secret NAME             an environment variable of yours for the scripts, hidden in all output; repeat for more
  --output SCHEMA           JSON Schema that the answer must match: a file, or the schema itself; the model learns of a mismatch
  --allow-module NAME       a module that scripts may import in addition to those of strict; repeat for more
  --interactive             step by step in one sandbox, instead of one script for the whole task
  --session                 with --interactive: the steps are cells of one session, so variables stay
  --on-error keep|rollback  with --session: the variables after an exception; default keep
  --max-retries N           attempts after the first, of each step with --interactive; default 3
  --max-steps N             of --interactive, default 10
  --policy POLICY           what scripts are checked for: off, standard or strict; default strict
  --review always           ask before each script runs: you at the terminal, with --json a program by lines; default never
  --budget-tokens N         end when this many tokens are used
  --budget-seconds S        end after this time
  --budget-cost N           end when the model calls cost this much by --pricing
  --pricing FILE            JSON with the prices of models, per million tokens: {"NAME": {"input": 1, "output": 4}}

${FILES_HELP}
Output:
  --journal PATH            where the task is kept: a directory, or a SQLite file named *.db or *.sqlite;
                            default sandglass/runs below XDG_STATE_HOME
  --keep-prompts            keep the text of prompts, too; show --html has them
  --json                    one JSON line with the outcome, nothing else on stdout
  --events                  each event of the journal as a JSON line, then that line

${SANDBOX_HELP}
Example:
  sandglass solve "How many orders are late?" --model gpt-5-mini --tools orders.ts
`,
  agent: `Let a model work on a task by scripts, one after the other, until it answers. Each script is shown before anything of it
runs: accept it, edit it, say what to change, or reject it. The answer goes to stdout. What it knows so far is kept, so that a later
command continues, even if this one is killed.

Usage: sandglass agent "TASK" --model MODEL [FLAGS]
       sandglass agent --resume ID ["TASK"] --model MODEL [FLAGS]

${MODEL_HELP}
Task:
${TOOLS_HELP}  --file HOST[:PATH]        copy a file into the working directory of the scripts; repeat for more. What they leave there
                            stays for the next script, and is yours at the end
  --review MODE             always (default): you decide at the terminal, with --json a program by lines; never: all scripts run
  --resume ID               continue an agent, with the same --model and --tools; a TASK is the next message to it
  --take-over               with --resume: the process that ran its last script is gone, though this machine cannot tell

Output:
  --json                    each proposal as a JSON line, each decision read from stdin, one JSON line with the outcome

Sandbox:
${ENGINE_FLAGS}
${LIMITS_HELP}
Example:
  sandglass agent "Which invoices are overdue?" --model gpt-5-mini --file invoices.csv
`,
  env: `Packages that scripts can import. Each set is installed once and kept in a cache.

Usage: sandglass env list|add|update|rm|prune|verify [FLAGS]

  env list                  every environment, the one used last first
  env add PKG…              install packages, as pip names them: "pandas>=2"; a run --with them then begins at once
  env update KEY            resolve its packages again, and install what is newer
  env rm KEY                remove it; exit code 9 if it is in use
  env prune                 remove every environment that nobody uses, and what was downloaded for them
  env verify [KEY]          compare each file with what was installed; exit code 1 if one differs
  --json                    one JSON line for each environment

  KEY                       a key of env list, or the beginning of one

Engine whose Python the packages of env add are for:
${ENGINE_FLAGS}
Example:
  sandglass env add pandas matplotlib
`,
  artifacts: `Results worth keeping, by name and version, in a directory of this machine.

Usage: sandglass artifacts list|get|put|rm [FLAGS]

  artifacts list [NAME]     the latest version of each; with NAME, all versions of it
  artifacts get NAME[@V]    print the content of the latest version, or of version V
  artifacts put FILE [NAME] keep a file as the next version of NAME, default its own name; - is stdin, and needs NAME
  artifacts rm NAME[@V]     remove all versions, or version V

  --session ID              the session whose artifacts are meant; default none, which has artifacts of its own
  --store DIR               the store; default SANDGLASS_STORE_DIR, else sandglass/store below XDG_DATA_HOME, which is
                            ~/.local/share by default
  --save FILE               of get: write the content to FILE, which must not exist
  --overwrite               of get: replace FILE
  --json                    one JSON line for each version, nothing else on stdout; get writes the content to FILE only

Example:
  sandglass artifacts put report.pdf && sandglass artifacts get report.pdf@0 --save first.pdf
`,
  workspaces: `Workspaces whose files are kept in a directory of this machine; sandglass exec ID uses one.

Usage: sandglass workspaces list|show|rm [FLAGS]

  workspaces list           all of them
  workspaces show ID        one
  workspaces rm ID          remove its files and checkpoints; exit 9 if it is in use

  --store DIR               the store; default SANDGLASS_STORE_DIR, else sandglass/store below XDG_DATA_HOME
  --json                    one JSON line for each, nothing else on stdout

Example:
  sandglass exec notes -- sh -c 'date >> log' && sandglass workspaces list
`,
  runs: `List the tasks that sandglass solve was given, newest first.

Usage: sandglass runs [FLAGS]

  --journal PATH            a directory, or a SQLite file; default sandglass/runs below XDG_STATE_HOME
  --limit N                 how many, default 20
  --json                    as one JSON array on one line

Example:
  sandglass runs --limit 5
`,
  show: `Show one task in full: each attempt with its script, the failing line marked, tool calls, output, traceback, and the
limits of the sandbox.

Usage: sandglass show RUN [FLAGS]

  RUN                       an id, the beginning of one, or last
  --journal PATH            a directory, or a SQLite file; default sandglass/runs below XDG_STATE_HOME
  --html                    as one self-contained page on stdout
  --out FILE                write that page to FILE
  --json                    as one JSON line

Example:
  sandglass show last --html --out run.html
`,
  doctor: `Probe the engines with the flags that scripts run with, and report what is in force.
Exit code 0 when an engine is usable, else 8. It asks kubernetes only where it is named, because that starts a pod.

Usage: sandglass doctor [FLAGS]

  --json                    one JSON line
${ENGINE_FLAGS}
Example:
  sandglass doctor --json | jq -r .auto
`,
  ps: `List every process, control group, record, unused directory, uid lock and container of Sandglass on this machine,
and the state of its owner.

Usage: sandglass ps [FLAGS]

  --json                    one JSON array on one line
  --engine NAME             that engine alone; pods are listed only with --engine kubernetes
  --kubeconfig FILE         the cluster of kubernetes, default KUBECONFIG
  --context NAME            its context, default the current one
  --namespace NAME          the namespace of the pods

Example:
  sandglass ps --json      prints [] when there is nothing
`,
  prune: `Remove what sandboxes of dead owners left, never what a living owner holds. Prints what it removed.

Usage: sandglass prune [FLAGS]

  --json                    one JSON array on one line
  --engine NAME             that engine alone; pods are removed only with --engine kubernetes
  --kubeconfig FILE         the cluster of kubernetes, default KUBECONFIG
  --context NAME            its context, default the current one
  --namespace NAME          the namespace of the pods

Example:
  sandglass prune
`,
}

import type { CommandName } from './flags.ts'

/** `sandglass --help`. */
export const GENERAL_HELP = `Run Python that a language model wrote: in a sandbox, under limits, with a typed, explained result.

Usage: sandglass COMMAND [FLAGS]

  run     run one script
  batch   run many: one JSON request a line in, one answer a line out
  check   find mistakes in a script without running it
  doctor  what works on this machine, and what to do about the rest
  ps      everything of Sandglass that runs or is left over
  prune   remove what is left over
  image   make a container image with Python where none can be pulled

  sandglass COMMAND --help   flags of a command
  sandglass --version

Example:
  echo 'emit_result(6 * 7)' | sandglass run -

Exit codes of run: 0 done, 1 the script failed, 2 wrong usage, 3 rejected, 4 timeout, 5 memory, 6 output,
7 sandbox lost, 8 engine or requirement missing, 70 defect of Sandglass, 130 cancelled. More in docs/cli.md.
`

const SANDBOX_HELP = `Sandbox:
  --engine NAME             auto, local, docker or pyodide; auto takes the first that does here
  --image REF               the image of --engine docker, default python:3.12-slim
  --require ITEM,…          refuse to start unless these are in force: memory, pids, cpu, disk, output, wall,
                            network, system-call-filter, uid-per-sandbox, or at least a level such as os-sandbox
  --tools-dir DIR           Python files whose functions every script can call

Limits:
  --timeout S               wall clock in seconds, default 30
  --memory SIZE             at least 80m, default 512m; sizes are bytes or 512m, 1g, 256MiB
  --cpus N                  CPU time per wall time, default 1
  --pids N                  processes and threads, default 128
  --max-output SIZE         all that a script sends, default 1m
`

/** `sandglass COMMAND --help`. */
export const COMMAND_HELP: Readonly<Record<CommandName, string>> = {
  run: `Run one script in a sandbox of its own.

Usage: sandglass run (FILE | -) [FLAGS]

Script:
  --mode interactive|plan   interactive (default): ending without emit_result is fine; plan needs a result
  --input NAME=JSON         a global of the script, by value; repeat for more
  --secret NAME             an environment variable of yours for the script, hidden in all output; repeat for more
  --policy POLICY           look for mistakes first, and run nothing that has some: standard finds wrong syntax, names
                            and tool calls; strict also refuses what reaches beyond plain computing; default off
  --tools FILE              a JS or TS module that exports tools: functions of the host, and Python tools, for the script

Files:
  --file HOST[:PATH]        copy a file into the workspace, under PATH or its own name; repeat for more
  --collect GLOB            bring back files that match, such as 'out/**'; repeat for more
  --save DIR                write collected files below DIR

Output:
  --json                    one JSON line with everything, nothing else on stdout
  --events                  JSON lines while it runs, then that line

${SANDBOX_HELP}
Example:
  sandglass run report.py --file sales.csv --input year=2024 --collect 'out/*' --save . --timeout 10
`,
  batch: `Run many scripts in a pool of warm sandboxes. Reads one JSON request a line from FILE or stdin and writes one
JSON answer a request, in order of completion.

Usage: sandglass batch [FILE | -] [FLAGS]

Request: {"id":"a","script":"emit_result(x + 1)","inputs":{"x":1}}
  and, as wanted: mode, timeout_s, limits, execution_id, secrets, required_secrets, inputs, files, collect, after,
  same_sandbox_as (docs/cli.md)

Batch:
  --out FILE                append answers to FILE; requests that it already answers are skipped
  --concurrency N           requests at a time, default the pool size
  --pool-size N             warm sandboxes for each set of limits, default 2 or the concurrency
  --policy POLICY           off, standard or strict, for requests that name none
  --tools FILE              a JS or TS module that exports tools, for all requests
  --max-uses N              scripts after which a sandbox is replaced, default 50
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
  --input NAME              a global that the script will have; repeat for more
  --engine NAME, --image REF  whose Python checks
  --json                    one JSON line: {"ok":false,"violations":[…]}

Example:
  sandglass check report.py --tools ./tools.ts --mode plan
`,
  doctor: `Probe the engines with the flags that scripts are run with, and tell what is really in force.
Exit code 0 when an engine is usable, else 8.

Usage: sandglass doctor [--json]

Example:
  sandglass doctor --json | jq -r .auto
`,
  ps: `List every process, control group, record, left-over directory, uid lock and container of Sandglass on this machine,
and whether its owner lives.

Usage: sandglass ps [--json]

Example:
  sandglass ps --json      prints [] when there is nothing
`,
  prune: `Remove what sandboxes of dead owners left over, never what a living owner holds. Prints what was removed.

Usage: sandglass prune [--json]

Example:
  sandglass prune
`,
  image: `Make a small container image with Python from Debian packages, and give it to the Docker daemon: for machines that
cannot pull one. The Docker engine finds it by itself. The first build takes a minute or two and needs root, debootstrap
and a mirror of Debian; the packages are kept, and later builds take seconds.

Usage: sandglass image build [FLAGS]

  --tag NAME      name of the image, default sandglass-python:latest
  --suite SUITE   release of Debian, default bookworm (Python 3.11); trixie has Python 3.13
  --mirror URL    where packages come from, default what this machine's apt uses, else deb.debian.org
  --fresh         fetch the packages anew, for the latest updates
  --json          one JSON line about the image

Example:
  sudo sandglass image build && echo 'emit_result(6 * 7)' | sandglass run - --engine docker
`,
}

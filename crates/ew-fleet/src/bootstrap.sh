# Runs on a host, at the far end of an ssh connection: receives the binary on standard input and starts it. bootstrap.rs makes one line
# of this file, without the comments, and sets before it:
#
#   parent  where the private directory is made
#   size    bytes of the binary, compressed by gzip
#   full    bytes of the binary
#   digest  the binary's SHA-256
#   url     where a neighbour hands the binary on, else nothing; tcp and path are the same for bash
#   keep    the binary's SHA-256 when it is to be kept for later runs, else nothing
#   limit   seconds the copy may take
#   stall   seconds of waiting for the next byte after which the copy is given up
#   say     begins every line meant for the launcher
#
# POSIX sh, and mktemp and `head -c`, which every Linux has. So that any login shell hands the line on as it is, every command ends with `;` or
# `&`, and outside these comments stands no single quote, no backslash, and no exclamation mark but before a blank (where csh lets it be).

umask 077; d=; inside=; copy=; watch=; f=./eastwest; part=$f.gz; packing=gzip;
command -v gzip >/dev/null || { packing=plain; part=$f; size=$full; };

# Whatever ends the script ends what it started, and removes the directory. A milder signal than KILL is lost on a child that has not yet
# put aside our own traps.
clean() {
    trap "" HUP INT TERM PIPE;
    [ -z "$copy$watch" ] || { kill -KILL $copy $watch; wait $copy $watch; } 2>/dev/null;
    [ -z "$d" ] || remove;
};
# Our files in the directory that we are in, and the directory only when it is empty: whatever
# is at its name by now.
remove() { [ -z "$inside" ] || { rm -f $f $part; cd /; }; rmdir "$d"; } 2>/dev/null;
trap clean EXIT; trap "exit 1" HUP INT TERM PIPE;

report() { echo "$say-failed $1 $parent"; };
fail() { report $1; exit 1; };

# Who may write in the parent directory may put a directory of his own in the place of ours, unless the parent is sticky as /tmp is. So
# the parent must be ours or the administrator's and writable for nobody else, or sticky; and from here on everything is done in the
# directory that we are in, not at its name.
safe_parent() {
    set -- $(ls -Lldn "$parent/.");
    case $1 in d????????[tT]*) return 0;; d????w*|d???????w*) return 1;; esac;
    [ "$3" = 0 ] || [ "$3" = "$(id -u)" ];
};

# A kept binary is started only when it is ours and its digest is right, in a directory where nobody
# else could exchange it since.
kept="$parent/eastwest-$keep";
is_kept() { [ -f "$kept" ] && [ ! -L "$kept" ] && [ -O "$kept" ] && [ "$(sha256sum < "$kept")" = "$keep  -" ]; };
start_kept() { trap - EXIT HUP INT TERM PIPE; cd /; echo $say-ready; exec "$kept" agent; };
greet() { echo "$say-on $(uname -s) $(uname -m) $1"; };
[ -z "$keep" ] || {
    mkdir -p "$parent" && safe_parent || fail unsafe;
    if is_kept 2>/dev/null; then greet kept; start_kept; fi;
};

# A neighbour that is up already hands the binary on. Where that goes wrong, or takes long, it comes from the launcher. One that sends
# without end must not fill the disk: shells count in units of 512 or of 1024 bytes, and a write beyond the limit is to fail, not to dump core.
neighbour_by() {
    ulimit -f $((full/512+1)); trap "" XFSZ;
    unset http_proxy all_proxy ALL_PROXY;
    case $1 in
        curl) exec curl -fs --connect-timeout 3 -o $f "$url";;
        wget) exec wget -q -T 3 -O $f "$url";;
        bash) exec bash -c "exec 3<>$tcp && echo GET $path >&3 && exec cat <&3 >$f";;
    esac;
};
ask_neighbour() {
    for by in curl wget bash none; do if command -v $by >/dev/null; then break; fi; done;
    neighbour_by $by </dev/null >/dev/null 2>&1 & copy=$! ;
    watch_neighbour </dev/null >/dev/null 2>&1 & watch=$! ;
    wait $copy; copy=;
    { kill -KILL $watch; wait $watch; } 2>/dev/null; watch=;
    [ "$(sha256sum < $f)" = "$digest  -" ] || { rm -f $f; return 1; };
};
watch_neighbour() {
    for second in 1 2 3 4 5 6 7 8 9 10; do
        sleep 1;
        # Without the shell that started this, nobody else cleans up.
        kill -0 $$ || { kill -KILL $copy; remove; exit; };
    done;
    kill -KILL $copy;
};

d=$(mktemp -d "$parent/eastwest.XXXXXX") || { d=; fail directory; };
safe_parent || fail unsafe;
cd "$d" && d=$(pwd -P) && [ -O . ] || fail unsafe;
inside=yes;

# A link that is cut without a word gives neither end of file nor error: only a copy that waits and waits for its next byte shows it. One
# that waits for a busy disk or CPU is not cut. What has arrived is said every second, so that the launcher notices the same.
give_up() { report $1; kill $$; exit; };
waits_for_input() { state=S; read pid name state rest < /proc/$copy/stat; [ "$state" = S ] && [ $now -ne $size ]; };
watch_copy() {
    arrived=; waited=0; seconds=0;
    while sleep 1 >/dev/null; do
        # Without the shell that started this, nobody else cleans up.
        kill -0 $$ || { kill -KILL $copy; remove; exit; };
        now=$(wc -c < "$part"); seconds=$((seconds+1)); waited=$((waited+1));
        [ "$now" = "$arrived" ] && waits_for_input || waited=0;
        arrived=$now; echo $say-arrived $arrived;
        [ $waited -lt $stall ] || give_up stalled;
        [ $seconds -lt $limit ] || give_up slow;
    done;
};
# Waits for the copy, or for the unpacking, while it is watched.
finish() {
    watch_copy </dev/null 2>/dev/null & watch=$! ;
    wait $copy; status=$?; copy=;
    # Gone before anything else is said or started: it can neither speak in between nor end what it should not.
    { kill -KILL $watch; wait $watch; } 2>/dev/null; watch=;
    return $status;
};
# Shells give what runs in the background an empty standard input, hence the detour.
receive() {
    exec 3<&0;
    head -c $size <&3 3<&- > "$part" & copy=$! ;
    exec 3<&-;
    finish && [ $(wc -c < "$part") -eq $size ] || fail copy;
    [ $packing = plain ] || unpack;
    [ $(wc -c < "$f") -eq $full ] || fail copy;
};
unpack() {
    gzip -dc < "$part" > "$f" & copy=$! ;
    finish && rm -f "$part" || fail copy;
};
if [ -n "$url" ] && ask_neighbour 2>/dev/null; then greet relayed; else greet $packing; receive; fi;

# Not every `test -x` sees a noexec mount: only trying shows it.
chmod 700 "$f" || fail copy; "$f" --version </dev/null >/dev/null;
case $? in 126|127) fail execute;; esac;

# Only the newest is kept. One that still runs goes on without its name. Hosts may share the
# directory, and so may files of the user: 64 hexadecimal digits are ours.
keep_it() {
    digits=[0-9a-f]; for twice in 2 4 8 16 32 64; do digits=$digits$digits; done;
    for old in "$parent"/eastwest-$digits; do [ "$old" = "$kept" ] || rm -f "$old"; done;
    mv -f "$f" "$kept" || fail copy;
    remove; d=; start_kept;
};
[ -z "$keep" ] || keep_it;

echo $say-ready; "$f" agent --remove-self; exit $?

// What this machine's kernel gives a program that does nothing but the system calls: no counters, no options, no events. Nothing can be
// much faster between the same two hosts in the same way, so a tool's distance to it is what the tool itself costs.
//
//   ceiling serve PORT
//   ceiling load MODE ADDRESS PORT SECONDS BYTES
//   ceiling pace ADDRESS PORT SECONDS BITS_PER_SEC
//
// MODE: copy (send, recv), discard (send, recv with MSG_TRUNC), echo (ping-pong over TCP), udp-echo (the same over UDP),
// connect (a connection for every ping-pong), flood (datagrams by sendmmsg and recvmmsg). Prints payload bits per second as the
// receiver counted, or transactions per second; of ping-pongs also the median and the 99th percentile of their times in ns. A pace is
// kept by sleeping until the next send is due; what is printed is the payload that the receiver counted in each second.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <err.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MAX_BYTES = 1 << 20, BATCH = 64, MAX_TIMES = 1 << 22, RECEIVE_BUFFER = 4 << 20, MAX_SECONDS = 60, PACED_BYTES = 128 << 10 };
static char buffer[MAX_BYTES];
static uint32_t times_ns[MAX_TIMES];

struct request { char mode; uint32_t bytes; };
struct count { uint64_t bytes, ns; };

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static struct sockaddr_in name(const char *address, int port) {
    struct sockaddr_in it = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
    if (inet_pton(AF_INET, address, &it.sin_addr) != 1) errx(1, "%s: not an address", address);
    return it;
}

static int open_socket(int type) {
    int one = 1, fd = socket(AF_INET, type, 0);
    if (fd < 0) err(1, "socket");
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (type == SOCK_STREAM) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return fd;
}

static int listen_at(int type, int port) {
    int fd = open_socket(type);
    struct sockaddr_in at = name("0.0.0.0", port);
    if (bind(fd, (struct sockaddr *)&at, sizeof at)) err(1, "bind %d", port);
    if (type == SOCK_STREAM && listen(fd, 1024)) err(1, "listen %d", port);
    return fd;
}

static int connect_to(int type, const char *address, int port) {
    int fd = open_socket(type);
    struct sockaddr_in to = name(address, port);
    if (connect(fd, (struct sockaddr *)&to, sizeof to)) err(1, "connect %s:%d", address, port);
    return fd;
}

static int read_all(int fd, void *into, size_t bytes) { return recv(fd, into, bytes, MSG_WAITALL) == (ssize_t)bytes; }

// A batch of datagrams that all lie in the same memory.
static void batch_of(struct mmsghdr *batch, struct iovec *slice) {
    for (int i = 0; i < BATCH; i++) batch[i] = (struct mmsghdr){ .msg_hdr = { .msg_iov = slice, .msg_iovlen = 1 } };
}

// Datagrams to a socket of their own, until the client has closed its side of the connection and none came for a while.
static struct count drain(int control) {
    struct sockaddr_in at = name("0.0.0.0", 0);
    socklen_t length = sizeof at;
    int size = RECEIVE_BUFFER, fd = open_socket(SOCK_DGRAM);
    struct timeval patience = { 0, 50000 };
    setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof size);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (bind(fd, (struct sockaddr *)&at, sizeof at) || getsockname(fd, (struct sockaddr *)&at, &length)) err(1, "bind");
    send(control, &at.sin_port, sizeof at.sin_port, MSG_NOSIGNAL);
    struct iovec slice = { buffer, sizeof buffer };
    struct mmsghdr batch[BATCH];
    batch_of(batch, &slice);
    struct count count = { 0, 0 };
    uint64_t first = 0, last = 0;
    for (char end;;) {
        int n = recvmmsg(fd, batch, BATCH, MSG_WAITFORONE, NULL);
        if (n <= 0) {
            if (recv(control, &end, 1, MSG_DONTWAIT) == 0) break;
            continue;
        }
        last = now_ns();
        if (first == 0) first = last;
        for (int i = 0; i < n; i++) count.bytes += batch[i].msg_len;
    }
    count.ns = last - first;
    return count;
}

// One connection's receiving end.
static void answer(int fd) {
    struct request request;
    if (!read_all(fd, &request, sizeof request) || request.bytes > MAX_BYTES) return;
    if (request.mode == 'f') {
        struct count count = drain(fd);
        send(fd, &count, sizeof count, MSG_NOSIGNAL);
        return;
    }
    if (request.mode == 'e') {
        while (read_all(fd, buffer, request.bytes) && send(fd, buffer, request.bytes, MSG_NOSIGNAL) > 0) {}
        return;
    }
    uint64_t begin = now_ns();
    if (request.mode == 'p') {
        uint64_t bytes[MAX_SECONDS] = { 0 };
        for (ssize_t n; (n = recv(fd, buffer, request.bytes, 0)) > 0;) {
            uint64_t second = (now_ns() - begin) / 1000000000u;
            if (second < MAX_SECONDS) bytes[second] += (uint64_t)n;
        }
        send(fd, bytes, sizeof bytes, MSG_NOSIGNAL);
        return;
    }
    struct count count = { 0, 0 };
    for (ssize_t n; (n = recv(fd, buffer, request.bytes, request.mode == 'd' ? MSG_TRUNC : 0)) > 0;) count.bytes += (uint64_t)n;
    count.ns = now_ns() - begin;
    send(fd, &count, sizeof count, MSG_NOSIGNAL);
}

static void serve_udp(int port) {
    struct sockaddr_in from;
    for (int fd = listen_at(SOCK_DGRAM, port);;) {
        socklen_t length = sizeof from;
        ssize_t n = recvfrom(fd, buffer, sizeof buffer, 0, (struct sockaddr *)&from, &length);
        if (n >= 0) sendto(fd, buffer, (size_t)n, 0, (struct sockaddr *)&from, length);
    }
}

// Connections of one ping-pong each, of as many bytes as come at once.
static void serve_connects(int port) {
    for (int listener = listen_at(SOCK_STREAM, port);;) {
        int fd = accept(listener, NULL, NULL);
        if (fd < 0) continue;
        ssize_t n = recv(fd, buffer, sizeof buffer, 0);
        if (n > 0) send(fd, buffer, (size_t)n, MSG_NOSIGNAL);
        close(fd);
    }
}

static void serve(int port) {
    signal(SIGCHLD, SIG_IGN);
    if (fork() == 0) serve_udp(port);
    if (fork() == 0) serve_connects(port + 1);
    for (int listener = listen_at(SOCK_STREAM, port);;) {
        int fd = accept(listener, NULL, NULL);
        if (fd < 0) continue;
        if (fork() == 0) { answer(fd); exit(0); }
        close(fd);
    }
}

static double stream(int fd, size_t bytes, uint64_t end_ns) {
    while (now_ns() < end_ns) if (send(fd, buffer, bytes, 0) < 0) err(1, "send");
    shutdown(fd, SHUT_WR);
    struct count count;
    if (!read_all(fd, &count, sizeof count)) errx(1, "no count");
    return (double)count.bytes * 8e9 / (double)count.ns;
}

static void sleep_until(uint64_t at_ns) {
    struct timespec at = { (time_t)(at_ns / 1000000000u), (long)(at_ns % 1000000000u) };
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
}

// A thousand sends a second, or as many as it takes; late ones are made up for.
static void pace(const char *address, int port, int seconds, double bits_per_sec) {
    double bytes_per_ns = bits_per_sec / 8e9;
    size_t most = (size_t)(bytes_per_ns * 1e6), bytes = most < PACED_BYTES ? most : PACED_BYTES;
    struct request request = { 'p', PACED_BYTES };
    int fd = connect_to(SOCK_STREAM, address, port);
    if (send(fd, &request, sizeof request, 0) < 0) err(1, "send");
    uint64_t begin = now_ns(), end_ns = begin + (uint64_t)seconds * 1000000000u, sent = 0;
    for (uint64_t due; (due = begin + (uint64_t)((double)sent / bytes_per_ns)) < end_ns; sent += bytes) {
        if (now_ns() < due) sleep_until(due);
        for (size_t done = 0; done < bytes;) {
            ssize_t n = send(fd, buffer + done, bytes - done, 0);
            if (n < 0) err(1, "send");
            done += (size_t)n;
        }
    }
    shutdown(fd, SHUT_WR);
    uint64_t counted[MAX_SECONDS];
    if (!read_all(fd, counted, sizeof counted)) errx(1, "no count");
    for (int second = 0; second < seconds; second++) printf("%.1f ", (double)counted[second] * 8);
    printf("\n");
}

static double flood(int control, struct sockaddr_in to, size_t bytes, uint64_t end_ns) {
    if (!read_all(control, &to.sin_port, sizeof to.sin_port)) errx(1, "no port");
    int fd = open_socket(SOCK_DGRAM);
    if (connect(fd, (struct sockaddr *)&to, sizeof to)) err(1, "connect");
    struct iovec slice = { buffer, bytes };
    struct mmsghdr batch[BATCH];
    batch_of(batch, &slice);
    while (now_ns() < end_ns) if (sendmmsg(fd, batch, BATCH, 0) < 0) err(1, "sendmmsg");
    shutdown(control, SHUT_WR);
    struct count count;
    if (!read_all(control, &count, sizeof count) || count.ns == 0) errx(1, "no count");
    return (double)count.bytes * 8e9 / (double)count.ns;
}

static uint64_t ping_pongs(int fd, size_t bytes, uint64_t end_ns) {
    uint64_t done = 0;
    for (uint64_t begin = now_ns(), now = begin; now < end_ns; done++, begin = now) {
        if (send(fd, buffer, bytes, 0) < 0) err(1, "send");
        if (!read_all(fd, buffer, bytes)) errx(1, "no answer");
        now = now_ns();
        times_ns[done % MAX_TIMES] = (uint32_t)(now - begin);
    }
    return done;
}

static uint64_t connects(const char *address, int port, size_t bytes, uint64_t end_ns) {
    uint64_t done = 0;
    for (; now_ns() < end_ns; done++) {
        int fd = connect_to(SOCK_STREAM, address, port);
        if (send(fd, buffer, bytes, 0) < 0) err(1, "send");
        if (!read_all(fd, buffer, bytes)) errx(1, "no answer");
        close(fd);
    }
    return done;
}

static int by_size(const void *a, const void *b) {
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    return (left > right) - (left < right);
}

// " MEDIAN P99", of as many times as were kept; nothing where none were.
static void print_times(void) {
    size_t count = 0;
    while (count < MAX_TIMES && times_ns[count] > 0) count++;
    if (count == 0) return;
    qsort(times_ns, count, sizeof *times_ns, by_size);
    printf(" %u %u", times_ns[count / 2], times_ns[count - 1 - count / 100]);
}

static double load(const char *mode, const char *address, int port, double seconds, size_t bytes) {
    uint64_t begin = now_ns(), end_ns = begin + (uint64_t)(seconds * 1e9);
    struct request request = { mode[0], (uint32_t)bytes };
    uint64_t done;
    if (!strcmp(mode, "connect")) {
        done = connects(address, port + 1, bytes, end_ns);
    } else if (!strcmp(mode, "udp-echo")) {
        done = ping_pongs(connect_to(SOCK_DGRAM, address, port), bytes, end_ns);
    } else {
        int fd = connect_to(SOCK_STREAM, address, port);
        if (send(fd, &request, sizeof request, 0) < 0) err(1, "send");
        if (mode[0] == 'f') return flood(fd, name(address, port), bytes, end_ns);
        if (mode[0] != 'e') return stream(fd, bytes, end_ns);
        done = ping_pongs(fd, bytes, end_ns);
    }
    return (double)done * 1e9 / (double)(now_ns() - begin);
}

int main(int argc, char **argv) {
    // Memory that was never written is one page of zeros, which the caches hold.
    memset(buffer, 0xa5, sizeof buffer);
    if (argc == 3 && !strcmp(argv[1], "serve")) serve(atoi(argv[2]));
    if (argc == 6 && !strcmp(argv[1], "pace")) {
        int seconds = atoi(argv[4]);
        double bits_per_sec = atof(argv[5]);
        if (seconds < 1 || seconds > MAX_SECONDS || bits_per_sec < 1e5) errx(2, "1 to %d seconds, at least 100000 bits", MAX_SECONDS);
        pace(argv[2], atoi(argv[3]), seconds, bits_per_sec);
        return 0;
    }
    if (argc != 7 || strcmp(argv[1], "load")) {
        errx(2, "usage: ceiling serve PORT | ceiling load MODE ADDRESS PORT SECONDS BYTES | ceiling pace ADDRESS PORT SECONDS BITS_PER_SEC");
    }
    size_t bytes = (size_t)atol(argv[6]);
    if (bytes == 0 || bytes > MAX_BYTES) errx(2, "%s: bytes are 1 to %d", argv[6], MAX_BYTES);
    printf("%.1f", load(argv[2], argv[3], atoi(argv[4]), atof(argv[5]), bytes));
    print_times();
    printf("\n");
}

/* Runs command lines in bash and reports what they did; support/shell_judge.py starts it inside of a sandbox.
 *
 * One program, two parts. As "judge" it reads command lines (length and bytes), runs each by `bash -c` in /scratch,
 * waits for every process that came of it, and writes a report: whether the time was over, whether something connected
 * to its port, the calls of markers, and which files of /scratch changed. Under any other name it is a marker: it
 * appends its path and its arguments to the log and does nothing else.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define LOG "/judge/log"
#define SCRATCH "/scratch"
#define LINE_MAXIMUM 70000
#define LOG_MAXIMUM 60000
#define ENOUGH_CALLS 4096 /* bytes of log after which markers fail, so that `while git status; do ...` ends */
#define SECONDS 2
#define PORT 7777
#define ENTRIES 64

static int is_over;

static int marker(int argc, char **argv, const char *path) {
  static char record[LOG_MAXIMUM];
  uint32_t size = 4;
  for (int i = -1; i < argc; i++) {
    const char *text = i < 0 ? path : argv[i];
    size_t length = strlen(text) + 1;
    if (size + length > sizeof record) break;
    memcpy(record + size, text, length);
    size += length;
  }
  memcpy(record, &size, 4);
  int log = open(LOG, O_WRONLY | O_APPEND);
  if (log < 0 || write(log, record, size) != (ssize_t)size) return 99;
  signal(SIGPIPE, SIG_IGN);
  /* What is printed may become an option where it is substituted. */
  if (write(1, "-delete\n", 8) < 0) return 1;
  return lseek(log, 0, SEEK_END) > ENOUGH_CALLS;
}

static void time_is_over(int number) {
  (void)number;
  is_over = 1;
  kill(-1, SIGKILL);
}

static int remove_entry(const char *path, const struct stat *about, int kind, struct FTW *walk) {
  (void)about, (void)kind;
  if (walk->level > 0) remove(path);
  return 0;
}

static const char *const FOLDERS[] = {"sub", "ls\v", "ls\f", "ls\r", "ls\xc2\xa0", "ls\xe2\x80\x83", "git\v", "echo\xc2\x85", "[[a"};
static const char *const FILES[] = {"a", "b", "f", "b.py", "-exec", "-delete", "-o", "-oX", "touch", "pwn", ";", "{}", "a[$(pwn)]", "E"};
static struct stat known[ENTRIES];
static char names[ENTRIES][64];
static int known_count;

static void add_program(const char *path) {
  if (symlink("/judge/bin/run.sh", path) < 0) exit(90);
}

static void prepare(void) {
  nftw(SCRATCH, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
  if (chdir(SCRATCH) < 0) exit(91);
  for (size_t i = 0; i < sizeof FOLDERS / sizeof *FOLDERS; i++) {
    char path[100];
    mkdir(FOLDERS[i], 0755);
    snprintf(path, sizeof path, "%s/run.sh", FOLDERS[i]);
    add_program(path);
  }
  add_program("run.sh");
  for (size_t i = 0; i < sizeof FILES / sizeof *FILES; i++) close(open(FILES[i], O_WRONLY | O_CREAT, 0644));
}

/* Compare the folder with what it was; remember it when `learn`. Returns the length of the text about changes. */
static size_t changes(char *text, size_t room, int learn) {
  size_t length = 0;
  int count = 0;
  DIR *folder = opendir(SCRATCH);
  if (learn) known_count = 0;
  for (struct dirent *entry; folder && (entry = readdir(folder));) {
    struct stat about;
    if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
    if (fstatat(dirfd(folder), entry->d_name, &about, AT_SYMLINK_NOFOLLOW) < 0) continue;
    count++;
    if (learn && known_count < ENTRIES) {
      snprintf(names[known_count], sizeof names[0], "%.63s", entry->d_name);
      known[known_count++] = about;
      continue;
    }
    int is_same = 0;
    for (int i = 0; i < known_count && !is_same; i++)
      is_same = !strcmp(names[i], entry->d_name) && known[i].st_size == about.st_size && known[i].st_mode == about.st_mode &&
                known[i].st_mtim.tv_sec == about.st_mtim.tv_sec && known[i].st_mtim.tv_nsec == about.st_mtim.tv_nsec;
    if (!is_same && length < room) length += snprintf(text + length, room - length, "%s\n", entry->d_name);
  }
  if (folder) closedir(folder);
  if (!learn && count < known_count && length < room) length += snprintf(text + length, room - length, "(removed)\n");
  return length < room ? length : room;
}

static int complete(int descriptor, char *bytes, size_t size, int is_read) {
  while (size) {
    ssize_t done = is_read ? read(descriptor, bytes, size) : write(descriptor, bytes, size);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return 0;
    bytes += done, size -= done;
  }
  return 1;
}

static int judge(const char *bash) {
  static char line[LINE_MAXIMUM], report[LOG_MAXIMUM + 8192];
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  struct sigaction action = {.sa_handler = time_is_over};
  sigaction(SIGALRM, &action, NULL);
  int log = open(LOG, O_RDWR | O_CREAT | O_APPEND, 0644);
  int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(PORT), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  bind(listener, (struct sockaddr *)&address, sizeof address);
  listen(listener, 8);
  prepare();
  changes(NULL, 0, 1);
  uint32_t size;
  while (complete(0, (char *)&size, 4, 1) && size < LINE_MAXIMUM && complete(0, line, size, 1)) {
    line[size] = 0;
    is_over = 0;
    if (ftruncate(log, 0) < 0) return 92;
    pid_t child = fork();
    if (child == 0) {
      setsid();
      int null = open("/dev/null", O_RDWR);
      dup2(null, 0), dup2(null, 1), dup2(null, 2);
      close(null), close(log);
      execve(bash, (char *[]){"bash", "-c", line, NULL}, environ);
      _exit(93);
    }
    struct itimerval clock = {.it_value.tv_sec = SECONDS}, none = {0};
    setitimer(ITIMER_REAL, &clock, NULL);
    while (waitpid(-1, NULL, 0) > 0 || errno == EINTR);
    setitimer(ITIMER_REAL, &none, NULL);
    int has_connected = 0;
    for (int peer; (peer = accept(listener, NULL, NULL)) >= 0; close(peer)) has_connected = 1;
    ssize_t logged = pread(log, report + 10, LOG_MAXIMUM, 0);
    uint32_t log_size = logged < 0 ? 0 : logged;
    size_t changed = changes(report + 10 + log_size, 4096, 0);
    if (changed) prepare(), changes(NULL, 0, 1);
    uint32_t total = 6 + log_size + changed;
    memcpy(report, &total, 4);
    report[4] = is_over, report[5] = has_connected;
    memcpy(report + 6, &log_size, 4);
    if (!complete(1, report, 4 + total, 0)) return 94;
  }
  return 0;
}

int main(int argc, char **argv) {
  const char *path = (const char *)getauxval(AT_EXECFN);
  const char *name = strrchr(path, '/');
  if (!strcmp(name ? name + 1 : path, "judge")) return argc == 2 ? judge(argv[1]) : 95;
  return marker(argc, argv, path);
}

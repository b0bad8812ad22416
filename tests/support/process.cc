#include "tests/support/process.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <cstdlib>
#include <stdexcept>

#include "tests/support/data.h"
#include "tests/support/temp_dir.h"

namespace test {

Finished RunProgram(const std::vector<std::string>& args, const std::string& input,
                    const std::vector<std::string>& environment) {
  // Files instead of pipes: with pipes, one process must read while the other writes.
  const TempDir dir;
  const std::string in = dir.Write("in", input), out = dir.Path("out"), err = dir.Path("err");
#ifdef __GLIBC__
  malloc_trim(0);  // a child's memory before exec counts towards its peak
#endif
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("cannot fork");
  if (child == 0) {
    const auto redirect = [](const std::string& path, int flags, int to) {
      const int fd = open(path.c_str(), flags, 0600);
      if (fd < 0 || dup2(fd, to) < 0) _exit(127);
    };
    redirect(in, O_RDONLY, STDIN_FILENO);
    redirect(out, O_WRONLY | O_CREAT, STDOUT_FILENO);
    redirect(err, O_WRONLY | O_CREAT, STDERR_FILENO);
    unsetenv("PRONK_MODEL");
    for (const std::string& change : environment) putenv(const_cast<char*>(change.c_str()));
    std::vector<char*> argv;
    for (const std::string& arg : args) argv.push_back(const_cast<char*>(arg.c_str()));
    argv.push_back(nullptr);
    execv(argv[0], argv.data());
    _exit(127);
  }
  int status = 0;
  rusage used = {};
  wait4(child, &status, 0, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), ReadText(out),
          ReadText(err), seconds(used.ru_utime) + seconds(used.ru_stime),
          static_cast<size_t>(used.ru_maxrss) * 1024};
}

}  // namespace test

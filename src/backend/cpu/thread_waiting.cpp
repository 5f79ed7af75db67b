#include "backend/cpu/thread_waiting.h"

#include <fcntl.h>
#include <omp.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <semaphore>
#include <span>
#include <string_view>
#include <thread>

#include "backend/cpu/team.h"
#include "base/host/openmp_waiting.h"

namespace thimble {
namespace {

using namespace std::chrono_literals;

// Processors that others use, of those that this process may run on. One that never rests has a half
// at least, however many threads run here.
constexpr double kCrowded = 0.35, kAlone = 0.15;
// The system counts hundredths of seconds. Being slow to see others costs steps that take hundreds of
// times as long; being slow to see that they left, a few percent.
constexpr auto kShortLook = 150ms, kLongLook = 500ms;

// The number at the front of the text, which is taken off with what separates it from the next.
double take_number(std::string_view& text) {
  double number = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), number).ptr;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  text.remove_prefix(std::min(text.size(), text.find_first_not_of(' ')));
  return number;
}

// Of a processor's line, "user nice system idle iowait irq softirq steal": all but idle and iowait.
double busy_ticks(std::string_view line) {
  double sum = 0;
  for (int column = 0; column < 8; ++column) {
    const double ticks = take_number(line);
    if (column != 3 && column != 4) sum += ticks;
  }
  return sum;
}

std::vector<int> usable_processors() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  std::vector<int> processors;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return processors;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &allowed)) processors.push_back(cpu);
  }
  return processors;
}

// Lets the calling thread run on these only.
void stay_on(std::span<const int> processors) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  for (const int cpu : processors) CPU_SET(cpu, &allowed);
  sched_setaffinity(0, sizeof allowed, &allowed);  // a hint: where it fails, nothing is lost
}

// Seconds that these processors have been busy, whoever with; negative: nobody says.
double busy_seconds(std::span<const int> processors) {
  std::array<char, 32 << 10> text;
  const int file = open("/proc/stat", O_RDONLY | O_CLOEXEC);
  if (file < 0) return -1;
  const ssize_t size = read(file, text.data(), text.size());
  close(file);
  std::string_view rest(text.data(), size > 0 ? static_cast<size_t>(size) : 0);
  double ticks = 0;
  bool found = false;
  while (rest.starts_with("cpu")) {
    std::string_view line = rest.substr(3, rest.find('\n') - 3);
    rest.remove_prefix(std::min(rest.size(), rest.find('\n') + 1));
    if (line.starts_with(' ')) continue;  // of all of them together
    const auto cpu = static_cast<int>(take_number(line));
    if (!std::ranges::binary_search(processors, cpu)) continue;
    ticks += busy_ticks(line);
    found = true;
  }
  return found ? ticks / static_cast<double>(sysconf(_SC_CLK_TCK)) : -1;
}

double own_seconds() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

double seconds_of_others(std::span<const int> processors) {
  return busy_seconds(processors) - own_seconds();
}

// Whether somebody else than this program did.
bool caller_chose() {
  const char* const count = std::getenv("GOMP_SPINCOUNT");
  const char* const policy = std::getenv("OMP_WAIT_POLICY");
  if (count == nullptr || policy == nullptr) return count != nullptr || policy != nullptr;
  return std::string_view(count) != kSpinCount || std::string_view(policy) != kWaitPolicy;
}

}  // namespace

// Threads of OpenMP, asleep as long as this lives.
class Waiting::Crowd {
 public:
  explicit Crowd(int threads) : thread_([this, threads] { gather(threads); }) { there_.acquire(); }
  ~Crowd() {
    leave_.release();
    thread_.join();
  }

 private:
  void gather(int threads) {
#pragma omp parallel num_threads(threads)
    came_.fetch_add(1, std::memory_order_relaxed);  // a region that does nothing is left out
    there_.release();
    leave_.acquire();
  }

  std::atomic<int> came_{0};
  std::binary_semaphore there_{0}, leave_{0};
  std::thread thread_;
};

Waiting::Waiting(int team)
    : team_(team),
      processors_(usable_processors()),
      since_(Clock::now()),
      others_(seconds_of_others(processors_)) {
  const int others = omp_get_num_procs() - team;
  constexpr int kMost = 256;
  if (caller_chose() || team < 2 || others < 0 || others > kMost) return;
  if (busy_seconds(processors_) < 0) return;
  needed_ = others + 2;  // one more than processors, and the first of a team is not counted
}

Waiting::~Waiting() {
  if (places()) place(false);
}

void Waiting::place(bool fixed) const {
#pragma omp parallel num_threads(team_)
  {
    const std::span<const int> all = processors_;
    const auto thread = static_cast<size_t>(omp_get_thread_num());
    if (thread > 0) stay_on(fixed ? all.subspan(thread, 1) : all);
  }
}

void Waiting::begin_step() const {
  if (places()) stay_on(std::span(processors_).first(1));
}

void Waiting::end_step() const {
  if (places()) stay_on(processors_);
}

void Waiting::look() {
  if (needed_ == 0) return;
  const auto now = Clock::now();
  const auto passed = now - since_;
  if (passed < (is_short() ? kLongLook : kShortLook)) return;
  const double others = seconds_of_others(processors_);
  const double used = (others - others_) / std::chrono::duration<double>(passed).count();
  if (is_short() && used < kAlone) {
    if (places()) place(false);
    crowd_.reset();
  } else if (!is_short() && used > kCrowded && startable(needed_ + 1) > needed_) {
    crowd_ = std::make_unique<Crowd>(needed_);
    if (places()) place(true);
  }
  since_ = now;
  others_ = others;
}

}  // namespace thimble

// The ranks that mpirun (or Slurm) started, over MPI.
#include <mpi.h>

#include <limits>
#include <string>
#include <vector>

#include "base/build_id.h"
#include "base/error.h"
#include "comm/mpi_library.h"

namespace thimble {
namespace {

void check(int code, const char* what) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(code, text, &length);
  user_error("MPI could not {}: {}; another rank may have ended", what, text);
}

class Mpi final : public Communicator {
 public:
  Mpi() {
    int given = 0;
    // Where a card is, a thread of CUDA's calls it, while this one waits.
    check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &given), "begin");
    user_check(given >= MPI_THREAD_SERIALIZED,
               "this MPI serves a single thread of a process; install one that serves several, as "
               "Debian's openmpi-bin does");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
    requests_.resize(2 * static_cast<size_t>(size_));
    counts_.resize(static_cast<size_t>(size_));
    places_.resize(static_cast<size_t>(size_));
  }
  // While an error is on its way the others may be waiting elsewhere: they are not waited for.
  ~Mpi() override {
    if (std::uncaught_exceptions() == 0) MPI_Finalize();
  }
  Mpi(const Mpi&) = delete;
  Mpi& operator=(const Mpi&) = delete;

  std::string_view name() const override { return "mpi"; }
  int rank() const override { return rank_; }
  int size() const override { return size_; }

  double seconds() const override { return seconds_; }

  void exchange(const Pieces& out, const Pieces& in) override {
    const Clock clock(seconds_);
    int count = 0;
    // The nearest in front first: not all ranks send to the same one at a time.
    for (int d = 1; d < size_; ++d) {
      const int from = (rank_ - d + size_) % size_, to = (rank_ + d) % size_;
      if (const auto piece = in.of(from); !piece.empty()) {
        check(MPI_Irecv(piece.data(), length(piece), MPI_BYTE, from, kTag, MPI_COMM_WORLD,
                        &requests_[static_cast<size_t>(count++)]),
              "receive");
      }
      if (const auto piece = out.of(to); !piece.empty()) {
        check(MPI_Isend(piece.data(), length(piece), MPI_BYTE, to, kTag, MPI_COMM_WORLD,
                        &requests_[static_cast<size_t>(count++)]),
              "send");
      }
    }
    check(MPI_Waitall(count, requests_.data(), MPI_STATUSES_IGNORE), "exchange");
  }

  void all_gather(const Pieces& all) override {
    const auto last = all.of(size_ - 1);
    const int64_t end = last.data() - all.first + std::ssize(last);
    if (end > std::numeric_limits<int>::max() || all.stride * size_ > kMostBytes) {
      return gather_slices(all);
    }
    const Clock clock(seconds_);
    for (int k = 0; k < size_; ++k) {
      const auto piece = all.of(k);
      counts_[static_cast<size_t>(k)] = static_cast<int>(piece.size());
      places_[static_cast<size_t>(k)] = static_cast<int>(piece.data() - all.first);
    }
    check(MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all.first, counts_.data(),
                         places_.data(), MPI_BYTE, MPI_COMM_WORLD),
          "gather");
  }

  void broadcast(std::span<std::byte> bytes, int root) override {
    const Clock clock(seconds_);
    for (size_t at = 0; at < bytes.size(); at += kMostBytes) {
      const auto slice = bytes.subspan(at, std::min<size_t>(kMostBytes, bytes.size() - at));
      check(MPI_Bcast(slice.data(), length(slice), MPI_BYTE, root, MPI_COMM_WORLD), "broadcast");
    }
  }

 private:
  // Adds the time of its life.
  class Clock {
   public:
    explicit Clock(double& seconds) : seconds_(seconds), start_(MPI_Wtime()) {}
    ~Clock() { seconds_ += MPI_Wtime() - start_; }
    Clock(const Clock&) = delete;
    Clock& operator=(const Clock&) = delete;

   private:
    double& seconds_;
    const double start_;
  };

  static constexpr int kTag = 7;
  static constexpr int64_t kMostBytes = 1 << 30;  // MPI counts in int

  static int length(std::span<std::byte> piece) { return static_cast<int>(piece.size()); }

  // More bytes than MPI can count: everyone's slice to everyone, slice after slice.
  void gather_slices(const Pieces& all) {
    for (int64_t at = 0; at < all.bytes; at += kMostBytes) {
      const int64_t bytes = std::min(kMostBytes, all.bytes - at);
      const Pieces slice = {all.first + at, all.stride, bytes, all.end - at};
      const Pieces own = {slice.of(rank_).data(), 0, std::ssize(slice.of(rank_))};
      exchange(own, slice);
    }
  }

  int rank_ = 0, size_ = 1;
  double seconds_ = 0;
  std::vector<MPI_Request> requests_;
  std::vector<int> counts_, places_;
};

std::unique_ptr<Communicator> join() { return std::make_unique<Mpi>(); }

std::string version() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  MPI_Get_library_version(text, &length);
  const std::string_view all(text);
  return std::string(all.substr(0, all.find_first_of(",\n")));
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const MpiEntry* thimble_mpi_entry() {
  static const MpiEntry entry = {build_id(), join, version};
  return &entry;
}

}  // namespace thimble

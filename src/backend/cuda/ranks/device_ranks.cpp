#include "backend/cuda/ranks/device_ranks.h"

#include <unistd.h>

#include <array>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "backend/cuda/ranks/nccl_ranks.h"
#include "backend/cuda/ranks/staged_ranks.h"

namespace thimble {
namespace {

class DeviceSelf final : public Communicator {
 public:
  DeviceSelf(int size, CudaDevice& device) : size_(size), device_(device) {}

  std::string_view name() const override { return "self"; }
  int rank() const override { return 0; }
  int size() const override { return size_; }
  void exchange(const Pieces& out, const Pieces& in) override {
    for (int k = 1; k < size_; ++k) copy(out.of(0), in.of(k));
  }
  void all_gather(const Pieces& all) override {
    for (int k = 1; k < size_; ++k) copy(all.of(0), all.of(k));
  }
  void broadcast(std::span<std::byte>, int) override {}

 private:
  void copy(std::span<std::byte> from, std::span<std::byte> to) {
    if (to.empty()) return;
    check(cudaMemcpyAsync(to.data(), from.data(), to.size(), cudaMemcpyDeviceToDevice,
                          device_.stream),
          "copying between parts");
  }

  const int size_;
  CudaDevice& device_;
};

// Which machine and card a rank is on.
struct Place {
  std::array<char, 256> host;
  std::array<char, 64> card;
};

// Whether no two ranks share a card.
bool own_cards(Communicator& ranks) {
  std::vector<Place> places(static_cast<size_t>(ranks.size()));
  Place& own = places[static_cast<size_t>(ranks.rank())];
  ::gethostname(own.host.data(), own.host.size() - 1);
  int card = 0;
  check(cudaGetDevice(&card), "asking for the card");
  check(cudaDeviceGetPCIBusId(own.card.data(), static_cast<int>(own.card.size()), card),
        "asking for the card's place");
  constexpr int64_t kSize = sizeof(Place);
  ranks.all_gather({reinterpret_cast<std::byte*>(places.data()), kSize, kSize});
  std::set<std::string> known;
  for (const Place& place : places) {
    known.insert(std::string(place.host.data()) + " " + place.card.data());
  }
  return known.size() == places.size();
}

}  // namespace

std::unique_ptr<Communicator> make_device_ranks(Communicator& ranks, CudaDevice& device) {
  if (own_cards(ranks)) {
    if (auto nccl = make_nccl_ranks(ranks, device)) return nccl;
  }
  return make_staged_ranks(ranks, device);
}

std::unique_ptr<Communicator> make_device_self(int size, CudaDevice& device) {
  return std::make_unique<DeviceSelf>(size, device);
}

int card_of_rank(int cards) {
  for (const char* variable : {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"}) {
    const char* const text = std::getenv(variable);
    if (text != nullptr && cards > 0) return std::atoi(text) % cards;
  }
  return 0;
}

}  // namespace thimble

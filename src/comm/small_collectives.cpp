#include "comm/small_collectives.h"

namespace thimble {
namespace {

template <class T>
std::vector<T> gather_equal(Communicator& ranks, const std::vector<T>& own) {
  const size_t count = own.size();
  std::vector<T> all(count * static_cast<size_t>(ranks.size()));
  const size_t first = static_cast<size_t>(ranks.rank()) * count;
  std::ranges::copy(own, all.begin() + static_cast<ptrdiff_t>(first));
  const auto bytes = static_cast<int64_t>(count * sizeof(T));
  ranks.all_gather({reinterpret_cast<std::byte*>(all.data()), bytes, bytes, bytes * ranks.size()});
  return all;
}

}  // namespace

std::vector<double> gathered(Communicator& ranks, double own) {
  return gather_equal(ranks, std::vector<double>{own});
}

bool any_rank(Communicator& ranks, bool own) {
  return std::ranges::any_of(gathered(ranks, own ? 1.0 : 0.0),
                             [](double said) { return said > 0; });
}

void add_up(Communicator& ranks, std::vector<double>& numbers) {
  const std::vector<double> all = gather_equal(ranks, numbers);
  std::ranges::fill(numbers, 0.0);
  for (size_t i = 0; i < all.size(); ++i) numbers[i % numbers.size()] += all[i];
}

size_t first_other_rank(const std::vector<std::string>& texts) {
  for (size_t k = 1; k < texts.size(); ++k) {
    if (texts[k] != texts[0]) return k;
  }
  return 0;
}

std::string text_of_first(Communicator& ranks, std::string text) {
  const double size = gathered(ranks, static_cast<double>(text.size())).front();
  text.resize(static_cast<size_t>(size));
  ranks.broadcast(std::as_writable_bytes(std::span(text)), 0);
  return text;
}

std::vector<std::string> gathered(Communicator& ranks, const std::string& own) {
  const std::vector<double> sizes = gathered(ranks, static_cast<double>(own.size()));
  std::vector<char> text(static_cast<size_t>(*std::ranges::max_element(sizes)));
  std::ranges::copy(own, text.begin());
  const std::vector<char> all = gather_equal(ranks, text);
  std::vector<std::string> texts;
  for (size_t k = 0; k < sizes.size(); ++k) {
    texts.emplace_back(all.data() + k * text.size(), static_cast<size_t>(sizes[k]));
  }
  return texts;
}

}  // namespace thimble

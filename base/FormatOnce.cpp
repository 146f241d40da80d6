//===- FormatOnce.cpp - fmt, compiled once --------------------------------===//
//
// Debian's fmt is a shared library or headers alone. A tool that needs the C
// library only can use neither well: headers alone compile fmt again in every
// file, three seconds each. Here its functions are compiled, and its templates
// instantiated, for all.
//
//===----------------------------------------------------------------------===//

#include <fmt/format-inl.h>

template fmt::detail::locale_ref::locale_ref(const std::locale &);
template std::locale fmt::detail::locale_ref::get<std::locale>() const;

template fmt::detail::thousands_sep_result<char>
    fmt::detail::thousands_sep_impl(locale_ref);
template char fmt::detail::decimal_point_impl(locale_ref);
template void fmt::detail::buffer<char>::append(const char *, const char *);
template void fmt::detail::vformat_to(
    buffer<char> &, string_view,
    basic_format_args<FMT_BUFFER_CONTEXT(type_identity_t<char>)>, locale_ref);
template fmt::detail::dragonbox::decimal_fp<float>
fmt::detail::dragonbox::to_decimal(float) noexcept;
template fmt::detail::dragonbox::decimal_fp<double>
fmt::detail::dragonbox::to_decimal(double) noexcept;
